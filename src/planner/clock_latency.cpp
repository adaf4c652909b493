#include "planner/clock_latency.h"

namespace braid::planner {

using costmodel::Estimate;
using costmodel::MicrobatchLoad;
using costmodel::Pass;
using costmodel::StageShape;

Estimate ClockLatency::alone(const StageShape& stage, std::span<const std::int32_t> ranks, const MicrobatchLoad& load,
                             Pass pass) {
  Estimate total = latency_.estimate(stage, load, pass);
  if (stage.tp <= 1) return total;
  const Bytes number_bytes = costmodel::bytes_of(cost().profile().storage().activations);
  for (costmodel::OperatorCall call : costmodel::stage_collectives(backbone(), stage, load, pass, number_bytes)) {
    call.shape = cost().group_shape(call.op, ranks);
    total += cost().estimate(call);
  }
  return total;
}

Estimate ClockLatency::estimate(const StageShape& stage, std::span<const std::int32_t> ranks,
                                std::span<const MicrobatchLoad> loads, Pass pass) {
  Estimate total;
  for (const MicrobatchLoad& load : loads) total += alone(stage, ranks, load, pass);
  return total;
}

}  // namespace braid::planner

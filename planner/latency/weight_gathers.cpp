#include "planner/latency/weight_gathers.h"

#include <algorithm>

#include "base/error.h"
#include "costmodel/work/memory.h"

namespace braid::planner {

using costmodel::Operator;
using costmodel::Pass;

WeightGathers weight_gathers(const costmodel::StageShape& stage, std::span<const std::int32_t> ranks,
                             const costmodel::CostModel& cost, const costmodel::BackboneShape& backbone) {
  BRAID_CHECK(stage.has_embedding && stage.has_head && stage.tp == 1, "shares of a part of the backbone");
  if (ranks.size() < 2) return {};
  const costmodel::WeightUnits units = costmodel::weight_units(backbone, stage, cost.storage());
  const costmodel::OperatorShape shape = cost.group_shape(Operator::all_gather, ranks);
  const auto gather = [&](Bytes bytes) {
    return cost.estimate({Operator::all_gather, Pass::forward, shape, bytes, 0, 0, 1}).seconds;
  };
  return {gather(units.rest), gather(units.layer), cost.overlap_slowdown()};
}

double gathered_seconds(double computed, double head, std::int64_t layers, const WeightGathers& gathers, Pass pass) {
  const auto count = static_cast<double>(layers);
  const double layer = (computed - head) / count;
  const double rest = pass == Pass::forward ? gathers.rest : 0;
  const double beside = layer + (1 - 1 / gathers.slowdown) * gathers.layer;
  return rest + gathers.layer + (count - 1) * std::max(beside, gathers.layer) + layer + head;
}

}  // namespace braid::planner

#include "planner/latency/clock_latency.h"

#include <algorithm>
#include <cmath>

#include "planner/latency/clock_schedule.h"

namespace braid::planner {

using costmodel::Estimate;
using costmodel::MicrobatchLoad;
using costmodel::Pass;
using costmodel::StageShape;

ClockLatency::ClockLatency(const costmodel::CostModel& cost, const costmodel::BackboneShape& backbone)
    : latency_(cost, backbone), run_prices_(cost, latency_.backbone()) {
  if (!cost.profile().on_gpus()) return;
  pricing_ = device_pricing(cost);
}

Estimate ClockLatency::collectives(const StageShape& stage, std::span<const std::int32_t> ranks,
                                   const MicrobatchLoad& load, Pass pass) const {
  Estimate total;
  if (stage.tp <= 1) return total;
  for (costmodel::OperatorCall call : costmodel::stage_collectives(backbone(), stage, load, pass, cost().storage())) {
    call.shape = cost().group_shape(call.op, ranks);
    total += cost().estimate(call);
  }
  return total;
}

PassTime ClockLatency::alone(const StageShape& stage, std::span<const std::int32_t> ranks, const MicrobatchLoad& load,
                             Pass pass) {
  PassTime time{latency_.estimate(stage, load, pass), 0};
  const Estimate waits = collectives(stage, ranks, load, pass);
  time += {waits, waits.seconds};
  return time;
}

PassTime ClockLatency::estimate(const StageShape& stage, std::span<const std::int32_t> ranks,
                                std::span<const MicrobatchLoad> loads, Pass pass, LaunchRule rule) {
  PassTime apart;
  for (const MicrobatchLoad& load : loads) apart += alone(stage, ranks, load, pass);
  if (loads.size() < 2 || !pricing_ || apart.total.seconds <= 0) return apart;
  Clock clock{stage, {ranks.begin(), ranks.end()}, {loads.begin(), loads.end()}, pass, rule};
  // They matter to the head alone, which does all its work in the Forward.
  const bool scores = stage.has_head && pass == Pass::forward;
  for (MicrobatchLoad& load : clock.loads) load.scored = scores ? head_rows(load, cost().storage()) : 0;
  std::size_t hash = static_cast<std::size_t>(stage.layers * 8 + stage.has_embedding * 4 + stage.has_head * 2) +
                     static_cast<std::size_t>(pass);
  for (const MicrobatchLoad& load : clock.loads)
    hash = hash * 31 * 1021 + static_cast<std::size_t>(load.tokens * 7 + load.scored);
  const auto [first, last] = known_.equal_range(hash);
  auto known = std::find_if(first, last, [&](const auto& entry) { return entry.second.first == clock; });
  if (known == last) known = known_.emplace(hash, std::pair(clock, interleaved(clock)));
  const Interleaved& together = known->second.second;
  if (together.seconds >= apart.total.seconds) return apart;
  const double share = together.seconds / apart.total.seconds;
  return {{together.seconds, share * apart.total.extrapolated_seconds}, together.stalled_seconds};
}

ClockLatency::Interleaved ClockLatency::interleaved(const Clock& clock) {
  // As in a pass alone: the host keeps what the roofline answers waiting.
  double host = 0, launched = 0;
  for (const MicrobatchLoad& load : clock.loads) {
    for (const costmodel::OperatorCall& call :
         costmodel::stage_operators(backbone(), clock.stage, load, clock.pass, cost().storage())) {
      const costmodel::CallPrice price = cost().price(call);
      host += price.launches * cost().profile().launch_seconds;
      if (price.launches > 0) launched += price.seconds;
    }
  }
  Interleaved time;
  const std::int64_t recomputed = clock.pass == Pass::backward ? clock.stage.recompute.layers : 0;
  if (0 < recomputed && recomputed < clock.stage.layers) {
    // As much of the time of either kind of layers as there are of them.
    Clock none = clock, all = clock;
    none.stage.recompute = {};
    all.stage.recompute.layers = clock.stage.layers;
    const double share = static_cast<double>(recomputed) / static_cast<double>(clock.stage.layers);
    const Interleaved apart = of_like_layers(none), again = of_like_layers(all);
    time = {std::lerp(apart.seconds, again.seconds, share),
            std::lerp(apart.stalled_seconds, again.stalled_seconds, share)};
  } else {
    time = of_like_layers(clock);
  }
  time.seconds += std::max(0.0, host - launched);
  return time;
}

ClockLatency::Interleaved ClockLatency::of_like_layers(const Clock& clock) {
  Interleaved time = scheduled(clock, std::min(clock.stage.layers, kScheduledLayers));
  if (clock.stage.layers > kScheduledLayers) {
    // Layers are alike, so that a schedule repeats itself from one to the next.
    const Interleaved few = scheduled(clock, kScheduledLayers - 1);
    const auto further = static_cast<double>(clock.stage.layers - kScheduledLayers);
    time.seconds += further * (time.seconds - few.seconds);
    time.stalled_seconds += further * (time.stalled_seconds - few.stalled_seconds);
    time.stalled_seconds = std::clamp(time.stalled_seconds, 0.0, time.seconds);
  }
  return time;
}

/// The schedule of a stage with so many layers, else the same.
ClockLatency::Interleaved ClockLatency::scheduled(const Clock& clock, std::int64_t layers) {
  const LaunchPricing pricing = on_ranks(*pricing_, cost(), clock.ranks);
  StageShape stage = clock.stage;
  stage.layers = layers;
  if (stage.recompute.any()) stage.recompute.layers = layers;
  const ClockSchedule made = clock_schedule(backbone(), stage, clock.loads, clock.pass, cost().storage(), clock.rule,
                                            pricing, cost().overlap_slowdown());
  return {seconds(made.launches.makespan), seconds(made.launches.exposed_communication)};
}

}  // namespace braid::planner

#include "planner/latency/clock_latency.h"

#include <algorithm>
#include <cmath>

#include "base/mixed_hash.h"

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
  Clock clock{stage, {ranks.begin(), ranks.end()}, {}, pass, rule};
  // Scored rows matter to the head alone, which does all its work in the Forward.
  const bool scores = stage.has_head && pass == Pass::forward;
  clock.loads.reserve(loads.size());
  for (const MicrobatchLoad& load : loads)
    clock.loads.push_back(loads_.number(load, scores ? head_rows(load, cost().storage()) : 0));
  const Interleaved& together = known_.of(clock, [&] { return interleaved(clock); });
  if (together.seconds >= apart.total.seconds) return apart;
  const double share = together.seconds / apart.total.seconds;
  return {{together.seconds, share * apart.total.extrapolated_seconds}, together.stalled_seconds};
}

std::size_t ClockLatency::Clock::hash() const {
  MixedHash hash(stage.layers * 16 + stage.has_embedding * 8 + stage.has_head * 4 + static_cast<int>(pass));
  for (const std::int32_t load : loads) hash.add(load);
  return hash.value();
}

std::vector<MicrobatchLoad> ClockLatency::loads_of(const Clock& clock) const {
  std::vector<MicrobatchLoad> loads;
  for (const std::int32_t load : clock.loads) loads.push_back(loads_[load]);
  return loads;
}

bool ClockLatency::shares_launches(const Clock& clock) const {
  return loads_[clock.loads.front()].kernels == costmodel::AdapterKernels::side_by_side &&
         std::all_of(clock.loads.begin(), clock.loads.end(),
                     [&](std::int32_t load) { return loads_[load].tasks.size() == 1; });
}

ClockLatency::Interleaved ClockLatency::interleaved(const Clock& clock) {
  // As in a pass alone: the host keeps what the roofline answers waiting.
  Hosted clocked;
  Clock one = clock;
  for (const std::int32_t load : clock.loads) {
    one.loads.assign(1, load);
    const Hosted& hosted = hosted_of(one);
    clocked.host += hosted.host;
    clocked.launched += hosted.launched;
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
  time.seconds += std::max(0.0, clocked.host - clocked.launched);
  return time;
}

ClockLatency::Interleaved ClockLatency::of_like_layers(const Clock& clock) {
  const std::int64_t most = clock.stage.tp == 1 ? kScheduledWithoutCollectives : kScheduledLayers;
  Interleaved time = scheduled(clock, std::min(clock.stage.layers, most));
  if (clock.stage.layers > most) {
    // Layers are alike, so that a schedule repeats itself from one to the next.
    const Interleaved few = scheduled(clock, most - 1);
    const auto further = static_cast<double>(clock.stage.layers - most);
    time.seconds += further * (time.seconds - few.seconds);
    time.stalled_seconds += further * (time.stalled_seconds - few.stalled_seconds);
    time.stalled_seconds = std::clamp(time.stalled_seconds, 0.0, time.seconds);
  }
  return time;
}

/// The schedule of a stage with so many layers, else the same.
ClockLatency::Interleaved ClockLatency::scheduled(const Clock& clock, std::int64_t layers) {
  Clock alone = clock;
  alone.stage.layers = layers;
  if (alone.stage.recompute.any()) alone.stage.recompute.layers = layers;
  if (clock.stage.tp == 1) return {seconds(serial(clock, std::move(alone))), 0};
  const LaunchPricing pricing = on_ranks(*pricing_, cost(), clock.ranks);
  std::vector<const SegmentedGraph*> graphs;
  for (const std::int32_t load : clock.loads) {
    alone.loads.assign(1, load);
    graphs.push_back(&segmented(alone, pricing));
  }
  const LaunchSchedule made =
      launched_together(graphs, loads_of(clock), clock.rule, pricing, cost().overlap_slowdown()).launches;
  return {seconds(made.makespan), seconds(made.exposed_communication)};
}

Nanoseconds ClockLatency::serial(const Clock& clock, Clock alone) {
  std::vector<const SerialWork*> works;
  for (const std::int32_t load : clock.loads) {
    alone.loads.assign(1, load);
    works.push_back(&serial_.of(alone, [&] {
      return serial_work(stage_graph(backbone(), alone.stage, loads_[load], alone.pass, cost().storage(), *pricing_));
    }));
  }
  return serial_time(works, shares_launches(clock), *pricing_);
}

const SegmentedGraph& ClockLatency::segmented(const Clock& alone, const LaunchPricing& pricing) {
  return graphs_.of(alone, [&] {
    return segmented_graph(backbone(), alone.stage, loads_[alone.loads.front()], alone.pass, cost().storage(), pricing);
  });
}

const ClockLatency::Hosted& ClockLatency::hosted_of(const Clock& alone) {
  return hosted_.of(alone, [&] {
    Hosted hosted;
    for (const costmodel::OperatorCall& call : costmodel::stage_operators(
             backbone(), alone.stage, loads_[alone.loads.front()], alone.pass, cost().storage())) {
      const costmodel::CallPrice price = cost().price(call);
      hosted.host += price.launches * cost().profile().launch_seconds;
      if (price.launches > 0) hosted.launched += price.seconds;
    }
    return hosted;
  });
}

}  // namespace braid::planner

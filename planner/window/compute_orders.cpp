#include "planner/window/compute_orders.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "planner/window/pipeline_units.h"

namespace braid::planner {
namespace {

std::vector<MicrobatchId> places(std::size_t count) {
  std::vector<MicrobatchId> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

StageOrder drained_order(const FixedPlan& fixed, std::span<const PipelineUnit> units, int stage,
                         const ReplicaShape& replica) {
  const int stages = replica.stages();
  const std::vector<MicrobatchId> all = places(units.size());
  switch (fixed.schedule.pipeline) {
    case PipelineTemplate::gpipe:
      return expand(gpipe_order(all), units);
    case PipelineTemplate::one_by_one:
      return expand(one_by_one_order(all), units);
    case PipelineTemplate::interleaved:
      return expand(interleaved_order(all, stage, stages, replica.model_chunks), units);
    case PipelineTemplate::one_forward_one_backward:
      return expand(one_forward_one_backward_order(all, stage, stages), units);
    case PipelineTemplate::structured:
    case PipelineTemplate::stream:
    case PipelineTemplate::lora_1f1b:
    case PipelineTemplate::lora_gpipe:
      break;
  }
  BRAID_CHECK(false, "the order of one hTask by itself in a pipeline of {}", name(fixed.schedule.pipeline));
}

void append(const StageOrder& order, StageOrder& all) {
  all.insert(all.end(), order.begin(), order.end());
}

/// One hTask's global batch after another.
std::vector<StageOrder> drained_orders(const FixedPlan& fixed, std::span<const HTaskRound> rounds,
                                       std::size_t replica) {
  const int stages = fixed.deployment[replica].stages();
  std::vector<StageOrder> orders(static_cast<std::size_t>(stages));
  for (const HTaskRound& round : rounds) {
    const std::vector<PipelineUnit> units = units_of(round.groups[replica]);
    for (int stage = 0; stage < stages; ++stage)
      append(drained_order(fixed, units, stage, fixed.deployment[replica]), orders[static_cast<std::size_t>(stage)]);
  }
  return orders;
}

/// The hTasks of each round: a list is one round's.
std::vector<std::span<const HTaskRound>> by_round(std::span<const HTaskRound> rounds) {
  std::vector<std::span<const HTaskRound>> all;
  for (std::size_t first = 0; first < rounds.size();) {
    std::size_t last = first;
    while (last < rounds.size() && rounds[last].round == rounds[first].round) ++last;
    all.push_back(rounds.subspan(first, last - first));
    first = last;
  }
  return all;
}

/// MuxTune's structured template: the plan's order of (bucket, clock). A window may have fewer clocks than the plan saw
/// (the last global batches), or more (lengths differ): the first are left out, the others come at the end.
std::vector<StageOrder> structured_orders(const FixedPlan& fixed, std::span<const HTaskRound> rounds,
                                          std::size_t replica) {
  const auto stages = static_cast<std::size_t>(fixed.deployment[replica].stages());
  BRAID_CHECK(fixed.schedule.order.size() == stages, "the template orders {} stages of {}", fixed.schedule.order.size(),
              stages);
  std::vector<StageOrder> orders(stages);
  for (const std::span<const HTaskRound> round : by_round(rounds)) {
    const auto clocks = clocks_of(fixed, round, replica);
    std::vector<PipelineUnit> units;
    std::map<std::pair<std::int32_t, std::int32_t>, MicrobatchId> place;
    for (std::size_t b = 0; b < clocks.size(); ++b) {
      for (std::size_t c = 0; c < clocks[b].size(); ++c) {
        place[{static_cast<std::int32_t>(b), static_cast<std::int32_t>(c)}] = static_cast<MicrobatchId>(units.size());
        units.push_back(clocks[b][c]);
      }
    }
    for (std::size_t stage = 0; stage < stages; ++stage) {
      StageOrder order;
      auto unseen = place;
      for (const TemplateSlot& slot : fixed.schedule.order[stage]) {
        const auto unit = place.find({slot.bucket, slot.clock});
        if (unit == place.end()) continue;
        order.push_back({slot.backward ? Kind::backward : Kind::forward, unit->second});
        unseen.erase(unit->first);
      }
      for (const auto& [key, unit] : unseen) {
        order.push_back({Kind::forward, unit});
        order.push_back({Kind::backward, unit});
      }
      append(expand(order, units), orders[stage]);
    }
  }
  return orders;
}

}  // namespace

std::vector<StageOrder> compute_orders(const FixedPlan& fixed, std::span<const HTaskRound> rounds,
                                       std::size_t replica) {
  if (fixed.schedule.pipeline == PipelineTemplate::structured) return structured_orders(fixed, rounds, replica);
  return drained_orders(fixed, rounds, replica);
}

}  // namespace braid::planner

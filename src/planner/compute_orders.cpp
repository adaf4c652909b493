#include "planner/compute_orders.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"

namespace braid::planner {
namespace {

std::vector<MicrobatchId> places(std::size_t count) {
  std::vector<MicrobatchId> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

PipelineUnit unit_of(const ChunkGroup& group) {
  PipelineUnit unit;
  for (const Microbatch& microbatch : group) unit.chunks.push_back({microbatch.id});
  return unit;
}

std::vector<PipelineUnit> units_of(const std::vector<ChunkGroup>& groups) {
  std::vector<PipelineUnit> units;
  for (const ChunkGroup& group : groups) units.push_back(unit_of(group));
  return units;
}

StageOrder drained_order(const FixedPlan& fixed, std::span<const PipelineUnit> units, int stage,
                         const ReplicaShape& replica) {
  const int stages = replica.stages();
  const std::vector<MicrobatchId> all = places(units.size());
  switch (fixed.pipeline) {
    case PipelineTemplate::gpipe:
      return expand(gpipe_order(all), units);
    case PipelineTemplate::one_by_one:
      return expand(one_by_one_order(all), units);
    case PipelineTemplate::interleaved:
      return expand(interleaved_order(all, stage, stages, replica.model_chunks), units);
    default:
      return expand(one_forward_one_backward_order(all, stage, stages), units);
  }
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

std::int64_t computed_tokens(const ChunkGroup& group) {
  std::int64_t tokens = 0;
  for (const Microbatch& microbatch : group) tokens += microbatch.computed_tokens();
  return tokens;
}

/// Units that follow one another without a drain; a unit's gate is the unit whose backward pass it waits for.
class UnitStream {
 public:
  void add(PipelineUnit unit, std::int64_t tokens, std::int32_t gate) {
    stream_.push_back({static_cast<MicrobatchId>(units_.size()), tokens, gate});
    units_.push_back(std::move(unit));
  }
  std::int32_t last() const { return static_cast<std::int32_t>(units_.size()) - 1; }

  std::vector<StageOrder> orders(int stages, LoraPipeline mode, double transfer) const {
    std::vector<StageOrder> orders = lora_pipeline_orders(stream_, stages, mode, transfer);
    for (StageOrder& order : orders) order = expand(order, units_);
    return orders;
  }

 private:
  std::vector<PipelineUnit> units_;
  std::vector<StreamedMicrobatch> stream_;
};

/// LoRAPP: one stream of all hTasks and rounds.
std::vector<StageOrder> streamed_orders(const FixedPlan& fixed, std::span<const HTaskRound> rounds,
                                        std::size_t replica) {
  UnitStream stream;
  std::map<std::int32_t, std::int32_t> last_of_htask;
  for (const HTaskRound& round : rounds) {
    const auto known = last_of_htask.find(round.htask);
    const std::int32_t gate = known == last_of_htask.end() ? kNone : known->second;
    for (const ChunkGroup& group : round.groups[replica]) stream.add(unit_of(group), computed_tokens(group), gate);
    if (!round.groups[replica].empty()) last_of_htask[round.htask] = stream.last();
  }
  const auto mode =
      fixed.pipeline == PipelineTemplate::lora_gpipe ? LoraPipeline::gpipe : LoraPipeline::one_forward_one_backward;
  return stream.orders(fixed.deployment[replica].stages(), mode, fixed.transfer_share);
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

/// The units of one round by bucket and clock: of each hTask of the bucket the group whose turn it is.
std::vector<std::vector<PipelineUnit>> clocks_of(const FixedPlan& fixed, std::span<const HTaskRound> round,
                                                 std::size_t replica) {
  std::vector<std::vector<PipelineUnit>> clocks(fixed.buckets.size());
  for (std::size_t b = 0; b < fixed.buckets.size(); ++b) {
    for (const HTaskRound& htask : round) {
      const std::vector<std::int32_t>& bucket = fixed.buckets[b];
      if (std::find(bucket.begin(), bucket.end(), htask.htask) == bucket.end()) continue;
      const std::vector<ChunkGroup>& groups = htask.groups[replica];
      clocks[b].resize(std::max(clocks[b].size(), groups.size()));
      for (std::size_t g = 0; g < groups.size(); ++g) {
        std::vector<std::vector<MicrobatchId>>& chunks = clocks[b][g].chunks;
        chunks.resize(std::max(chunks.size(), groups[g].size()));
        for (std::size_t c = 0; c < groups[g].size(); ++c) chunks[c].push_back(groups[g][c].id);
      }
    }
  }
  return clocks;
}

/// The same clocks, bucket by bucket and round by round, in one stream of 1F1B.
std::vector<StageOrder> bucket_stream_orders(const FixedPlan& fixed, std::span<const HTaskRound> rounds,
                                             std::size_t replica) {
  std::map<MicrobatchId, std::int64_t> tokens;
  for (const HTaskRound& round : rounds) {
    for (const ChunkGroup& group : round.groups[replica]) {
      for (const Microbatch& microbatch : group) tokens[microbatch.id] = microbatch.computed_tokens();
    }
  }
  UnitStream stream;
  std::vector<std::int32_t> last_of_bucket(fixed.buckets.size(), kNone);
  for (const std::span<const HTaskRound> round : by_round(rounds)) {
    const auto clocks = clocks_of(fixed, round, replica);
    for (std::size_t b = 0; b < clocks.size(); ++b) {
      const std::int32_t gate = last_of_bucket[b];
      for (const PipelineUnit& unit : clocks[b]) {
        std::int64_t work = 0;
        for (const std::vector<MicrobatchId>& chunk : unit.chunks) {
          for (const MicrobatchId id : chunk) work += tokens.at(id);
        }
        stream.add(unit, work, gate);
        last_of_bucket[b] = stream.last();
      }
    }
  }
  return stream.orders(fixed.deployment[replica].stages(), LoraPipeline::one_forward_one_backward,
                       fixed.transfer_share);
}

/// MuxTune's structured template: the plan's order of (bucket, clock). A window may have fewer clocks than the plan saw
/// (the last global batches), or more (lengths differ): the first are left out, the others come at the end.
std::vector<StageOrder> structured_orders(const FixedPlan& fixed, std::span<const HTaskRound> rounds,
                                          std::size_t replica) {
  const auto stages = static_cast<std::size_t>(fixed.deployment[replica].stages());
  BRAID_CHECK(fixed.order.size() == stages, "the template orders {} stages of {}", fixed.order.size(), stages);
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
      for (const TemplateSlot& slot : fixed.order[stage]) {
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
  switch (fixed.pipeline) {
    case PipelineTemplate::structured:
      return structured_orders(fixed, rounds, replica);
    case PipelineTemplate::stream:
      return bucket_stream_orders(fixed, rounds, replica);
    case PipelineTemplate::lora_1f1b:
    case PipelineTemplate::lora_gpipe:
      return streamed_orders(fixed, rounds, replica);
    default:
      return drained_orders(fixed, rounds, replica);
  }
}

}  // namespace braid::planner

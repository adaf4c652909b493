#include "planner/window/unit_stream.h"

#include <algorithm>

#include "base/error.h"
#include "planner/window/pipeline_units.h"

namespace braid::planner {
namespace {

std::int64_t computed_tokens(const ChunkGroup& group) {
  std::int64_t tokens = 0;
  for (const Microbatch& microbatch : group) tokens += microbatch.computed_tokens();
  return tokens;
}

}  // namespace

bool streams(const FixedPlan& fixed) {
  return fixed.schedule.pipeline == PipelineTemplate::lora_1f1b ||
         fixed.schedule.pipeline == PipelineTemplate::lora_gpipe || fixed.schedule.pipeline == PipelineTemplate::stream;
}

UnitStream::UnitStream(const FixedPlan& fixed)
    : fixed_(fixed), by_line_(fixed.deployment.size() == 1 && !fixed.batching.bins), pipes_(fixed.deployment.size()) {
  BRAID_CHECK(streams(fixed), "a stream of a pipeline of {}", name(fixed.schedule.pipeline));
  BRAID_CHECK(fixed.schedule.pipeline != PipelineTemplate::stream || fixed.deployment.size() == 1,
              "a stream of {} replicas", fixed.deployment.size());
}

std::vector<BatchKey> UnitStream::push(const Round& round, std::span<const Microbatch> microbatches) {
  std::vector<BatchKey> syncs = sync_order_of(round, microbatches);
  std::vector<std::vector<Line>> lines;
  double work = 0, count = 0;
  for (std::size_t replica = 0; replica < pipes_.size(); ++replica) {
    lines.push_back(fixed_.schedule.pipeline == PipelineTemplate::stream ? lines_of_buckets(round, microbatches)
                                                                         : lines_of_htasks(round, replica));
    for (const Line& line : lines.back()) {
      for (const Unit& unit : line.second) work += static_cast<double>(unit.work), ++count;
    }
  }
  if (!by_line_) place_gates(syncs, lines);
  for (const BatchKey& key : syncs) last_ids_.erase(key);
  if (count == 0) return syncs;
  const auto mode = fixed_.schedule.pipeline == PipelineTemplate::lora_gpipe ? LoraPipeline::gpipe
                                                                             : LoraPipeline::one_forward_one_backward;
  for (std::size_t replica = 0; replica < pipes_.size(); ++replica) {
    Pipe& pipe = pipes_[replica];
    // Who knows when it will have any: what waits for it should not.
    const bool idles =
        std::all_of(lines[replica].begin(), lines[replica].end(), [](const Line& line) { return line.second.empty(); });
    if (idles && pipe.pipeline && pipes_.size() > 1) pipe.pipeline->pause();
    if (!pipe.pipeline && !idles)
      pipe.pipeline.emplace(fixed_.deployment[replica].stages(), mode, fixed_.schedule.transfer_share, work / count);
    for (Line& line : lines[replica]) {
      const auto before = pipe.last.find(line.first);
      const std::int32_t line_gate = before == pipe.last.end() ? kNone : before->second;
      for (Unit& unit : line.second) {
        const std::int32_t gate = by_line_ ? line_gate : gate_of(unit, line, replica);
        pipe.last[line.first] = pipe.pushed;
        pipe.pipeline->push({pipe.pushed, unit.work, gate});
        pipe.units.emplace(pipe.pushed++, std::move(unit.unit));
      }
    }
  }
  return syncs;
}

void UnitStream::end() {
  for (Pipe& pipe : pipes_) {
    if (pipe.pipeline) pipe.pipeline->end();
  }
}

std::vector<StageOrder> UnitStream::advance(std::size_t replica) {
  Pipe& pipe = pipes_[replica];
  if (!pipe.pipeline) return std::vector<StageOrder>(static_cast<std::size_t>(fixed_.deployment[replica].stages()));
  const std::vector<StageOrder> places = pipe.pipeline->advance();
  std::vector<StageOrder> orders(places.size());
  for (std::size_t stage = 0; stage < places.size(); ++stage) {
    for (const ComputeSlot& slot : places[stage]) append_unit(slot, pipe.units.at(slot.microbatch), orders[stage]);
  }
  for (const ComputeSlot& slot : places.front()) {
    if (slot.kind == Kind::backward) pipe.units.erase(slot.microbatch);
  }
  return orders;
}

/// The round's steps by the last microbatch that has samples of them.
std::vector<BatchKey> UnitStream::sync_order_of(const Round& round, std::span<const Microbatch> microbatches) {
  for (const Microbatch& microbatch : microbatches) {
    for (const BatchKey& key : batches_of(microbatch)) {
      MicrobatchId& last = last_ids_.try_emplace(key, microbatch.id).first->second;
      last = std::max(last, microbatch.id);
    }
  }
  std::vector<std::pair<MicrobatchId, BatchKey>> keyed;
  for (const WindowStep& step : round.steps) {
    const BatchKey key{step.task, step.global_batch};
    if (const auto last = last_ids_.find(key); last != last_ids_.end()) keyed.emplace_back(last->second, key);
  }
  std::sort(keyed.begin(), keyed.end());
  std::vector<BatchKey> order;
  for (const auto& [id, key] : keyed) order.push_back(key);
  return order;
}

/// Per sync and replica, the place of the last unit up to the last microbatch that it or a sync before waits for.
void UnitStream::place_gates(std::span<const BatchKey> syncs, std::span<const std::vector<Line>> lines) {
  for (const BatchKey& key : syncs) {
    synced_up_to_ = std::max(synced_up_to_, last_ids_.at(key));
    std::vector<std::int32_t>& places = gates_[key];
    for (std::size_t replica = 0; replica < pipes_.size(); ++replica) {
      std::int32_t place = pipes_[replica].pushed - 1;
      for (const Line& line : lines[replica]) {
        for (const Unit& unit : line.second) place += unit.first <= synced_up_to_ ? 1 : 0;
      }
      places.push_back(place >= 0 ? place : kNone);
    }
    gates_.erase({key.task, key.global_batch - 2});
  }
}

/// The last unit that the Steps before the unit's batches wait for.
std::int32_t UnitStream::gate_of(const Unit& unit, const Line& line, std::size_t replica) const {
  std::int32_t gate = kNone;
  const auto wait_for = [&](const BatchKey& before) {
    const auto known = gates_.find(before);
    if (known != gates_.end()) gate = std::max(gate, known->second[replica]);
  };
  for (const BatchKey& key : unit.batches) wait_for({key.task, key.global_batch - 1});
  if (fixed_.batching.bins) return gate;
  for (const Unit& other : line.second) {
    for (const BatchKey& key : other.batches) wait_for({key.task, key.global_batch - 1});
  }
  return gate;
}

std::vector<UnitStream::Line> UnitStream::lines_of_htasks(const Round& round, std::size_t replica) const {
  std::vector<Line> lines;
  for (const HTaskRound& htask : round.htasks) {
    std::vector<Unit>& units = lines.emplace_back(htask.htask, std::vector<Unit>{}).second;
    const std::vector<ChunkGroup>& groups = htask.groups[replica];
    std::vector<PipelineUnit> passing = units_of(groups);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      Unit& unit =
          units.emplace_back(Unit{std::move(passing[g]), computed_tokens(groups[g]), groups[g].front().id, {}});
      if (by_line_) continue;
      for (const Microbatch& microbatch : groups[g]) {
        for (const BatchKey& key : batches_of(microbatch)) unit.batches.push_back(key);
      }
    }
  }
  return lines;
}

std::vector<UnitStream::Line> UnitStream::lines_of_buckets(const Round& round,
                                                           std::span<const Microbatch> microbatches) const {
  std::map<MicrobatchId, std::int64_t> tokens;
  for (const Microbatch& microbatch : microbatches) tokens[microbatch.id] = microbatch.computed_tokens();
  std::vector<Line> lines;
  for (std::vector<PipelineUnit>& clocks : clocks_of(fixed_, round.htasks, 0)) {
    std::vector<Unit>& units = lines.emplace_back(static_cast<std::int32_t>(lines.size()), std::vector<Unit>{}).second;
    for (PipelineUnit& clock : clocks) {
      std::int64_t work = 0;
      for (const std::vector<MicrobatchId>& chunk : clock.chunks) {
        for (const MicrobatchId id : chunk) work += tokens.at(id);
      }
      units.push_back({std::move(clock), work, 0, {}});
    }
  }
  return lines;
}

}  // namespace braid::planner

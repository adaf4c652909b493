#include "planner/program/lowering.h"

#include <algorithm>

#include "base/error.h"
#include "planner/program/cut.h"

namespace braid::planner {
namespace {

InstructionId append_compute(StageProgram& stage, Kind kind, std::span<const Part> parts,
                             std::span<const InstructionId> waits) {
  Instruction instruction;
  instruction.kind = kind;
  return stage.append(instruction, waits, parts);
}

}  // namespace

Lowering::Lowering(const LoweringRules& rules, std::vector<std::int64_t> next_batch, InstructionId first_id)
    : rules_(rules), first_batch_(std::move(next_batch)), layout_(lay_out(rules, first_id)), program_(layout_.empty) {
  states_.resize(program_.stages.size());
  for (StageBoundary& stage : program_.before.stages) stage.next_batch = first_batch_;
}

void Lowering::push(std::span<const Microbatch> microbatches, std::span<const BatchKey> syncs) {
  for (const Microbatch& microbatch : microbatches) {
    UnderWay& added = under_way_[microbatch.id];
    added = {microbatch.id, microbatch.computed_tokens(), batches_of(microbatch),
             rules_.replicas[static_cast<std::size_t>(microbatch.replica)].stages()};
    const StageIndex first = layout_.first_stage[static_cast<std::size_t>(microbatch.replica)];
    for (StageIndex stage = first; stage < first + added.stages_left; ++stage) {
      for (const BatchKey& key : added.batches) {
        ++state_at(stage).backwards_left[key];
        ++state_at(stage).forwards_left[round_of(key)];
      }
    }
  }
  for (const BatchKey& key : syncs) pushed_ = std::max(pushed_, round_of(key));
  program_.microbatches.insert(program_.microbatches.end(), microbatches.begin(), microbatches.end());
  sync_order_.insert(sync_order_.end(), syncs.begin(), syncs.end());
}

void Lowering::feed(std::size_t replica, std::size_t stage, const StageOrder& order) {
  const StageIndex index = layout_.first_stage[replica] + static_cast<StageIndex>(stage);
  sync_what_is_complete(index);
  step_what_has_ended(index);
  for (auto slot = order.begin(); slot != order.end();) {
    const auto end = std::find_if(slot + 1, order.end(), [](const ComputeSlot& other) { return !other.joins; });
    const Together microbatches = together({slot, end});
    if (slot->kind == Kind::forward) {
      open_gates(index, microbatches);
      compute(index, Kind::forward, microbatches, slot->subgraph);
      if (slot->subgraph + 1 == stage_at(index).subgraphs) count_forwards(index, microbatches);
    } else {
      compute(index, Kind::backward, microbatches, slot->subgraph);
      if (slot->subgraph == 0) count_backwards(index, microbatches);
      sync_what_is_complete(index);
    }
    slot = end;
  }
}

Lowering::Together Lowering::together(std::span<const ComputeSlot> slots) const {
  Together microbatches;
  for (const ComputeSlot& slot : slots) {
    const auto found = under_way_.find(slot.microbatch);
    BRAID_CHECK(found != under_way_.end(), "microbatch {} was not pushed, or has left", slot.microbatch);
    microbatches.push_back(&found->second);
  }
  return microbatches;
}

void Lowering::finish() {
  for (StageIndex index = 0; index < static_cast<StageIndex>(states_.size()); ++index)
    append_pending(index, [](const PendingStep&) { return true; });
}

std::int64_t Lowering::fewest_steps() const {
  return std::min_element(states_.begin(), states_.end(),
                          [](const StageState& a, const StageState& b) { return a.steps < b.steps; })
      ->steps;
}

std::optional<Program> Lowering::take(std::int64_t round) {
  // Steps that are yet to come wait for what may lie before the cut.
  for (std::size_t s = 0; s < states_.size(); ++s) {
    std::map<InstructionId, Awaited> awaited;
    const StageProgram& stage = program_.stages[s];
    for (const PendingStep& step : states_[s].pending) {
      for (const InstructionId id : step.waits) {
        awaited[id] = id >= stage.first_id ? describe_awaited(stage, static_cast<std::size_t>(id - stage.first_id))
                                           : *find_awaited(program_.before.stages[s], id);
      }
    }
    std::vector<Awaited>& after = program_.after.stages[s].awaited;
    after.clear();
    for (const auto& [id, entry] : awaited) after.push_back(entry);
  }
  std::vector<std::int64_t> next_batch = first_batch_;
  for (std::int64_t& next : next_batch) next += round + 1;
  auto slices = cut_if_whole(program_, end_of_window(program_, next_batch));
  if (!slices) return std::nullopt;
  auto& [slice, rest] = *slices;
  std::vector<Microbatch> all = std::move(program_.microbatches);
  // What the rest does not name yet it may name later.
  std::erase_if(all, [&](const Microbatch& microbatch) {
    const auto named = std::lower_bound(rest.microbatches.begin(), rest.microbatches.end(), microbatch.id,
                                        [](const Microbatch& one, MicrobatchId id) { return one.id < id; });
    return !under_way_.contains(microbatch.id) || (named != rest.microbatches.end() && named->id == microbatch.id);
  });
  const auto named = static_cast<std::ptrdiff_t>(rest.microbatches.size());
  rest.microbatches.insert(rest.microbatches.end(), all.begin(), all.end());
  std::inplace_merge(rest.microbatches.begin(), rest.microbatches.begin() + named, rest.microbatches.end(),
                     [](const Microbatch& a, const Microbatch& b) { return a.id < b.id; });
  program_ = std::move(rest);
  return std::move(slice);
}

Program Lowering::take_rest() {
  program_.after = empty_boundary(program_);
  for (std::size_t s = 0; s < program_.stages.size(); ++s) {
    std::vector<std::int64_t>& next = program_.after.stages[s].next_batch;
    next = program_.before.stages[s].next_batch;
    for (const Instruction& instruction : program_.stages[s].instructions) {
      if (instruction.kind == Kind::step)
        next[static_cast<std::size_t>(instruction.task)] = instruction.global_batch + 1;
    }
  }
  return std::move(program_);
}

template <typename Due>
void Lowering::append_pending(StageIndex index, const Due& due) {
  std::vector<PendingStep>& pending = state_at(index).pending;
  for (const PendingStep& step : pending) {
    if (due(step)) append_step(index, step);
  }
  std::erase_if(pending, due);
}

/// The step gate: Steps of the tasks' earlier global batches come before this forward.
void Lowering::open_gates(StageIndex index, const Together& microbatches) {
  if (state_at(index).pending.empty()) return;
  append_pending(index, [&](const PendingStep& step) {
    return std::any_of(microbatches.begin(), microbatches.end(), [&](const UnderWay* passing) {
      return std::any_of(passing->batches.begin(), passing->batches.end(), [&](const BatchKey& key) {
        return step.key.task == key.task && step.key.global_batch < key.global_batch;
      });
    });
  });
}

void Lowering::count_forwards(StageIndex index, const Together& microbatches) {
  for (const UnderWay* passing : microbatches) {
    for (const BatchKey& key : passing->batches) --state_at(index).forwards_left.at(round_of(key));
  }
  step_what_has_ended(index);
}

/// When all of a round has gone forward, tasks whose Step of an earlier one is pending have no further.
void Lowering::step_what_has_ended(StageIndex index) {
  StageState& state = state_at(index);
  std::map<std::int64_t, int>& left = state.forwards_left;
  while (!left.empty() && left.begin()->second == 0 && left.begin()->first <= pushed_) left.erase(left.begin());
  const std::int64_t forwarded = std::min(pushed_, left.empty() ? pushed_ : left.begin()->first - 1);
  if (forwarded <= state.forwarded) return;
  state.forwarded = forwarded;
  append_pending(index, [&](const PendingStep& step) { return round_of(step.key) < state.forwarded; });
}

void Lowering::count_backwards(StageIndex index, const Together& microbatches) {
  for (const UnderWay* passing : microbatches) {
    for (const BatchKey& key : passing->batches) --state_at(index).backwards_left[key];
    const MicrobatchId id = passing->id;
    UnderWay& ended = under_way_.at(id);
    if (--ended.stages_left == 0) under_way_.erase(id);
  }
}

void Lowering::sync_what_is_complete(StageIndex index) {
  StageState& state = state_at(index);
  for (; state.synced < sync_order_.size(); ++state.synced) {
    const BatchKey& key = sync_order_[state.synced];
    const auto left = state.backwards_left.find(key);
    if (left != state.backwards_left.end() && left->second > 0) return;
    if (left != state.backwards_left.end()) state.backwards_left.erase(left);
    sync(index, key);
  }
}

InstructionId Lowering::append_step(StageIndex index, const PendingStep& step) {
  Instruction instruction;
  instruction.kind = Kind::step;
  instruction.task = step.key.task;
  instruction.global_batch = step.key.global_batch;
  StageState& state = state_at(index);
  ++state.steps;
  const InstructionId id = stage_at(index).append(instruction, step.waits);
  state.last_steps[step.key.task] = id;
  return id;
}

InstructionId Lowering::append_message(StageProgram& stage, Kind kind, const UnderWay& passing, ChannelIndex channel,
                                       std::int32_t subgraph, std::span<const InstructionId> waits) const {
  Instruction instruction;
  instruction.kind = kind;
  if (!rules_.blocking_messages) instruction.stream = is_send(kind) ? Stream::send : Stream::recv;
  instruction.microbatch = passing.id;
  instruction.channel = channel;
  instruction.bytes = passing.tokens * rules_.bytes_per_token;
  instruction.subgraph = subgraph;
  return stage.append(instruction, waits);
}

void Lowering::compute(StageIndex index, Kind kind, const Together& microbatches, std::int32_t subgraph) {
  const bool forward = kind == Kind::forward;
  const std::vector<ChannelIndex>& channel_to = forward ? layout_.activation_to : layout_.gradient_to;
  StageProgram& stage = stage_at(index);
  const Part part{0, subgraph, subgraph + 1};
  std::vector<InstructionId> waits;
  std::vector<Part> parts;
  for (const UnderWay* passing : microbatches) {
    parts.push_back({passing->id, subgraph, subgraph + 1});
    if (!stage.receives(kind, part)) continue;
    waits.push_back(append_message(stage, forward ? Kind::recv_activation : Kind::recv_gradient, *passing,
                                   channel_to[static_cast<std::size_t>(index)], subgraph, {}));
  }
  const InstructionId id = append_compute(stage, kind, parts, waits);
  if (!forward) state_at(index).last_backward = id;
  if (!stage.sends(kind, part)) return;
  const StageIndex to = forward ? layout_.next(index) : layout_.previous(index);
  for (const UnderWay* passing : microbatches)
    append_message(stage, forward ? Kind::send_activation : Kind::send_gradient, *passing,
                   channel_to[static_cast<std::size_t>(to)], subgraph, {&id, 1});
}

void Lowering::sync(StageIndex index, const BatchKey& key) {
  StageProgram& stage = stage_at(index);
  StageState& state = state_at(index);
  // A replica without samples of this batch may come here before the Step of the one before, or just after it: that
  // Step still reads the gradients which this sync overwrites.
  std::vector<InstructionId> ready;
  if (state.last_backward != kNone) ready = {state.last_backward};
  const auto last_step = state.last_steps.find(key.task);
  if (last_step != state.last_steps.end() && last_step->second > state.last_backward) ready = {last_step->second};
  const auto earlier = [&](const PendingStep& step) {
    return step.key.task == key.task && step.key.global_batch < key.global_batch;
  };
  for (const PendingStep& step : state.pending) {
    if (earlier(step)) ready = {append_step(index, step)};
  }
  std::erase_if(state.pending, earlier);
  PendingStep step{key, {}};
  for (const SharedLayers& shared : layout_.shared[static_cast<std::size_t>(index)]) {
    Instruction instruction;
    instruction.kind = Kind::sync_adapter;
    instruction.stream = Stream::sync;
    instruction.task = key.task;
    instruction.global_batch = key.global_batch;
    instruction.group = shared.group;
    instruction.layers = shared.layers;
    instruction.bytes = rules_.gradient_bytes ? rules_.gradient_bytes(key.task, shared.layers) : 0;
    step.waits.push_back(stage.append(instruction, ready));
  }
  if (rules_.tasks[static_cast<std::size_t>(key.task)].clips) {
    Instruction instruction;
    instruction.kind = Kind::reduce_norm;
    instruction.stream = Stream::sync;
    instruction.task = key.task;
    instruction.global_batch = key.global_batch;
    instruction.group = layout_.norm_group[static_cast<std::size_t>(stage.replica)];
    instruction.bytes = stage.layer_count() * static_cast<Bytes>(sizeof(double));
    const InstructionId norm = stage.append(instruction, step.waits.empty() ? ready : step.waits);
    step.waits.push_back(norm);
  }
  // A window's Steps come before the next one's on every stage.
  const bool others_wait = std::any_of(state.pending.begin(), state.pending.end(),
                                       [&](const PendingStep& other) { return round_of(other.key) < round_of(key); });
  if (round_of(key) < state.forwarded || (step.waits.empty() && !others_wait)) {
    append_step(index, step);
  } else {
    state.pending.push_back(std::move(step));
  }
}

}  // namespace braid::planner

#include "planner/lower.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "planner/batch_key.h"
#include "planner/sync_order.h"

namespace braid::planner {
namespace {

/// Layers that one and the same set of several ranks holds, and the group in which those meet.
struct SharedLayers {
  LayerRange layers;
  GroupIndex group = 0;
};

class Lowering {
 public:
  explicit Lowering(const Schedule& schedule) : schedule_(schedule) {
    for (const Microbatch& microbatch : schedule.microbatches) batches_.push_back(batches_of(microbatch));
    sync_order_ = sync_order(schedule, batches_);
  }

  Program run() {
    program_.microbatches = schedule_.microbatches;
    program_.task_count = static_cast<std::int32_t>(schedule_.tasks.size());
    program_.blocking_messages = schedule_.blocking_messages;
    make_stages();
    make_channels();
    make_groups();
    for (StageIndex stage = 0; stage < stage_count(); ++stage) lower_stage(stage);
    make_boundaries();
    return std::move(program_);
  }

 private:
  StageIndex stage_count() const { return static_cast<StageIndex>(program_.stages.size()); }

  void make_stages() {
    std::int32_t next_rank = 0;
    for (std::size_t replica = 0; replica < schedule_.replicas.size(); ++replica) {
      const ReplicaShape& shape = schedule_.replicas[replica];
      first_stage_.push_back(stage_count());
      for (std::int32_t s = 0; s < shape.stages(); ++s) {
        StageProgram stage;
        stage.replica = static_cast<std::int32_t>(replica);
        stage.stage = s;
        for (std::int32_t c = 0; c < shape.model_chunks; ++c) stage.layers.push_back(shape.chunk(s, c));
        stage.subgraphs = shape.model_chunks;
        stage.has_embedding = s == 0;
        stage.has_head = s == shape.stages() - 1;
        stage.first_id = schedule_.first_id;
        for (std::int32_t t = 0; t < shape.tp; ++t) stage.ranks.push_back(next_rank++);
        program_.stages.push_back(std::move(stage));
      }
    }
  }

  /// The stage that takes a stage's activations. Interleaved stages are a ring.
  StageIndex next(StageIndex index) const {
    const StageProgram& stage = program_.stages[static_cast<std::size_t>(index)];
    return stage.has_head ? first_stage_[static_cast<std::size_t>(stage.replica)] : index + 1;
  }
  /// And the one that takes its gradients.
  StageIndex previous(StageIndex index) const {
    const StageProgram& stage = program_.stages[static_cast<std::size_t>(index)];
    if (!stage.has_embedding) return index - 1;
    return index + schedule_.replicas[static_cast<std::size_t>(stage.replica)].stages() - 1;
  }

  void make_channels() {
    activation_to_.assign(program_.stages.size(), kNone);
    gradient_to_.assign(program_.stages.size(), kNone);
    const auto add = [&](StageIndex from, StageIndex to) {
      program_.channels.push_back({from, to});
      return static_cast<ChannelIndex>(program_.channels.size() - 1);
    };
    for (StageIndex stage = 0; stage < stage_count(); ++stage) {
      const StageProgram& from = program_.stages[static_cast<std::size_t>(stage)];
      if ((from.has_head && !from.interleaves()) || next(stage) == stage) continue;
      activation_to_[static_cast<std::size_t>(next(stage))] = add(stage, next(stage));
      gradient_to_[static_cast<std::size_t>(stage)] = add(next(stage), stage);
    }
  }

  GroupIndex add_group(std::vector<StageIndex> stages) {
    program_.groups.push_back({std::move(stages)});
    return static_cast<GroupIndex>(program_.groups.size() - 1);
  }

  /// Cuts the layers wherever some replica cuts them; each run belongs to one stage of every replica.
  void make_groups() {
    shared_.resize(program_.stages.size());
    std::set<std::int32_t> cuts;
    std::int32_t ranks = 0;
    for (const StageProgram& stage : program_.stages) {
      for (const LayerRange& range : stage.layers) cuts.insert({range.first, range.last});
      ranks = std::max(ranks, static_cast<std::int32_t>(stage.ranks.size()));
    }
    if (schedule_.replicas.size() > 1 || ranks > 1) {
      std::map<std::vector<StageIndex>, GroupIndex> known;
      for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
        const LayerRange run{*cut, *std::next(cut)};
        std::vector<StageIndex> holders;
        for (StageIndex stage = 0; stage < stage_count(); ++stage) {
          if (program_.stages[static_cast<std::size_t>(stage)].holds(run)) holders.push_back(stage);
        }
        if (!known.contains(holders)) known[holders] = add_group(holders);
        for (const StageIndex stage : holders)
          shared_[static_cast<std::size_t>(stage)].push_back({run, known[holders]});
      }
    }
    for (std::size_t replica = 0; replica < schedule_.replicas.size(); ++replica) {
      std::vector<StageIndex> stages;
      for (std::int32_t s = 0; s < schedule_.replicas[replica].stages(); ++s)
        stages.push_back(first_stage_[replica] + s);
      norm_group_.push_back(add_group(std::move(stages)));
    }
  }

  void lower_stage(StageIndex index) {
    StageProgram& stage = program_.stages[static_cast<std::size_t>(index)];
    last_backward_ = kNone;
    std::map<BatchKey, int> backwards_left;
    for (std::size_t m = 0; m < batches_.size(); ++m) {
      if (schedule_.microbatches[m].replica != stage.replica) continue;
      for (const BatchKey& key : batches_[m]) ++backwards_left[key];
    }
    std::size_t synced = 0;
    std::vector<PendingStep> pending;
    const StageOrder& order =
        schedule_.orders[static_cast<std::size_t>(stage.replica)][static_cast<std::size_t>(stage.stage)];
    const auto sync_what_is_complete = [&] {
      while (synced < sync_order_.size() && backwards_left[sync_order_[synced]] == 0) {
        sync(index, sync_order_[synced++], pending);
      }
    };
    sync_what_is_complete();
    for (auto slot = order.begin(); slot != order.end();) {
      const auto end = std::find_if(slot + 1, order.end(), [](const ComputeSlot& other) { return !other.joins; });
      std::vector<const Microbatch*> together;
      for (auto same = slot; same != end; ++same) together.push_back(&program_.microbatch(same->microbatch));
      if (slot->kind == Kind::forward) {
        for (const Microbatch* microbatch : together) {
          for (const BatchKey& key : batches(*microbatch)) open_gate(stage, key, pending);
        }
        forward(index, together, slot->subgraph);
      } else {
        backward(index, together, slot->subgraph);
        for (const Microbatch* microbatch : together) {
          if (slot->subgraph > 0) break;
          for (const BatchKey& key : batches(*microbatch)) --backwards_left[key];
        }
        sync_what_is_complete();
      }
      slot = end;
    }
    for (const PendingStep& step : pending) append_step(stage, step);
  }

  struct PendingStep {
    BatchKey key;
    std::vector<InstructionId> waits;
  };

  /// The step gate: Steps of the task's earlier global batches come before this forward.
  static void open_gate(StageProgram& stage, const BatchKey& key, std::vector<PendingStep>& pending) {
    const auto earlier = [&](const PendingStep& step) {
      return step.key.task == key.task && step.key.global_batch < key.global_batch;
    };
    for (const PendingStep& step : pending) {
      if (earlier(step)) append_step(stage, step);
    }
    std::erase_if(pending, earlier);
  }

  static InstructionId append_step(StageProgram& stage, const PendingStep& step) {
    Instruction instruction;
    instruction.kind = Kind::step;
    instruction.task = step.key.task;
    instruction.global_batch = step.key.global_batch;
    return stage.append(instruction, step.waits);
  }

  /// Of one of the Program's microbatches.
  const std::vector<BatchKey>& batches(const Microbatch& microbatch) const {
    return batches_[static_cast<std::size_t>(&microbatch - program_.microbatches.data())];
  }

  Bytes message_bytes(const Microbatch& microbatch) const {
    return microbatch.computed_tokens() * schedule_.bytes_per_token;
  }

  InstructionId append_message(StageProgram& stage, Kind kind, const Microbatch& microbatch, ChannelIndex channel,
                               std::int32_t subgraph, std::span<const InstructionId> waits) const {
    Instruction instruction;
    instruction.kind = kind;
    if (!schedule_.blocking_messages) instruction.stream = is_send(kind) ? Stream::send : Stream::recv;
    instruction.microbatch = microbatch.id;
    instruction.channel = channel;
    instruction.bytes = message_bytes(microbatch);
    instruction.subgraph = subgraph;
    return stage.append(instruction, waits);
  }

  static InstructionId append_compute(StageProgram& stage, Kind kind, std::span<const Microbatch* const> microbatches,
                                      std::int32_t subgraph, std::span<const InstructionId> waits) {
    Instruction instruction;
    instruction.kind = kind;
    std::vector<Part> parts;
    for (const Microbatch* microbatch : microbatches) parts.push_back({microbatch->id, subgraph, subgraph + 1});
    return stage.append(instruction, waits, parts);
  }

  void forward(StageIndex index, std::span<const Microbatch* const> microbatches, std::int32_t subgraph) {
    StageProgram& stage = program_.stages[static_cast<std::size_t>(index)];
    const Part part{0, subgraph, subgraph + 1};
    std::vector<InstructionId> waits;
    for (const Microbatch* microbatch : microbatches) {
      if (!stage.receives(Kind::forward, part)) break;
      waits.push_back(append_message(stage, Kind::recv_activation, *microbatch,
                                     activation_to_[static_cast<std::size_t>(index)], subgraph, {}));
    }
    const InstructionId id = append_compute(stage, Kind::forward, microbatches, subgraph, waits);
    for (const Microbatch* microbatch : microbatches) {
      if (!stage.sends(Kind::forward, part)) break;
      append_message(stage, Kind::send_activation, *microbatch, activation_to_[static_cast<std::size_t>(next(index))],
                     subgraph, {&id, 1});
    }
  }

  void backward(StageIndex index, std::span<const Microbatch* const> microbatches, std::int32_t subgraph) {
    StageProgram& stage = program_.stages[static_cast<std::size_t>(index)];
    const Part part{0, subgraph, subgraph + 1};
    std::vector<InstructionId> waits;
    for (const Microbatch* microbatch : microbatches) {
      if (!stage.receives(Kind::backward, part)) break;
      waits.push_back(append_message(stage, Kind::recv_gradient, *microbatch,
                                     gradient_to_[static_cast<std::size_t>(index)], subgraph, {}));
    }
    const InstructionId id = append_compute(stage, Kind::backward, microbatches, subgraph, waits);
    last_backward_ = id;
    for (const Microbatch* microbatch : microbatches) {
      if (!stage.sends(Kind::backward, part)) break;
      append_message(stage, Kind::send_gradient, *microbatch, gradient_to_[static_cast<std::size_t>(previous(index))],
                     subgraph, {&id, 1});
    }
  }

  void sync(StageIndex index, const BatchKey& key, std::vector<PendingStep>& pending) {
    StageProgram& stage = program_.stages[static_cast<std::size_t>(index)];
    std::vector<InstructionId> ready;
    if (last_backward_ != kNone) ready.push_back(last_backward_);
    // A replica without samples of this batch may come here before the Step of the one before: that Step still reads
    // the gradients which this sync overwrites.
    const auto earlier = [&](const PendingStep& step) {
      return step.key.task == key.task && step.key.global_batch < key.global_batch;
    };
    for (const PendingStep& step : pending) {
      if (earlier(step)) ready = {append_step(stage, step)};
    }
    std::erase_if(pending, earlier);
    std::vector<InstructionId> synced;
    for (const SharedLayers& shared : shared_[static_cast<std::size_t>(index)]) {
      Instruction instruction;
      instruction.kind = Kind::sync_adapter;
      instruction.stream = Stream::sync;
      instruction.task = key.task;
      instruction.global_batch = key.global_batch;
      instruction.group = shared.group;
      instruction.layers = shared.layers;
      instruction.bytes = schedule_.gradient_bytes ? schedule_.gradient_bytes(key.task, shared.layers) : 0;
      synced.push_back(stage.append(instruction, ready));
    }
    if (schedule_.tasks[static_cast<std::size_t>(key.task)].clips) {
      Instruction instruction;
      instruction.kind = Kind::reduce_norm;
      instruction.stream = Stream::sync;
      instruction.task = key.task;
      instruction.global_batch = key.global_batch;
      instruction.group = norm_group_[static_cast<std::size_t>(stage.replica)];
      instruction.bytes = stage.layer_count() * static_cast<Bytes>(sizeof(double));
      const InstructionId norm = stage.append(instruction, synced.empty() ? ready : synced);
      synced.push_back(norm);
    }
    pending.push_back({key, synced});
    if (synced.empty()) {
      append_step(stage, pending.back());
      pending.pop_back();
    }
  }

  void make_boundaries() {
    program_.before = empty_boundary(program_);
    program_.after = empty_boundary(program_);
    for (std::size_t stage = 0; stage < program_.stages.size(); ++stage) {
      program_.before.stages[stage].next_batch = schedule_.next_batch;
      program_.after.stages[stage].next_batch = schedule_.next_batch;
      for (const BatchKey& key : sync_order_) {
        std::int64_t& next = program_.after.stages[stage].next_batch[static_cast<std::size_t>(key.task)];
        next = std::max(next, key.global_batch + 1);
      }
    }
  }

  const Schedule& schedule_;
  std::vector<std::vector<BatchKey>> batches_;  // per microbatch
  std::vector<BatchKey> sync_order_;
  Program program_;
  std::vector<StageIndex> first_stage_;            // per replica
  std::vector<ChannelIndex> activation_to_;        // per receiving stage
  std::vector<ChannelIndex> gradient_to_;          // per receiving stage
  std::vector<std::vector<SharedLayers>> shared_;  // per stage
  std::vector<GroupIndex> norm_group_;             // per replica
  InstructionId last_backward_ = kNone;            // on the stage being lowered
};

}  // namespace

Program lower(const Schedule& schedule) {
  return Lowering(schedule).run();
}

}  // namespace braid::planner

#pragma once

#include <map>
#include <optional>
#include <unordered_map>

#include "planner/program/batch_key.h"
#include "planner/program/program_layout.h"

namespace braid::planner {

/// `lower` (lower.h) of a schedule that comes piece by piece: passes are fed as they are decided, and what stands
/// before a window's end is cut off as a slice. Keeps nothing but ids of what lies in slices that were taken.
class Lowering {
 public:
  /// `rules` must outlive it. `next_batch`: per task, its global batch that comes first; rounds are counted from there.
  Lowering(const LoweringRules& rules, std::vector<std::int64_t> next_batch, InstructionId first_id);

  /// Microbatches that passes will name. All that are left of a round, the n-th global batches of all tasks, come in
  /// one call, and are synced in the order of `syncs`, after those of earlier calls. They may have samples of the round
  /// that follows.
  void push(std::span<const Microbatch> microbatches, std::span<const BatchKey> syncs);
  /// The passes of a stage that follow those fed before.
  void feed(std::size_t replica, std::size_t stage, const StageOrder& order);
  /// No more passes come.
  void finish();

  /// The fewest Steps on any stage, of all that were fed.
  std::int64_t fewest_steps() const;
  /// The slice up to the last Step of that round on each stage, all of which have been fed; nothing where more must be
  /// fed before the cut.
  std::optional<Program> take(std::int64_t round);
  /// After finish(): all that is left.
  Program take_rest();

 private:
  struct PendingStep {
    BatchKey key;
    std::vector<InstructionId> waits;
  };
  /// Where the lowering of one stage's list stands.
  struct StageState {
    std::map<BatchKey, int> backwards_left;
    std::map<std::int64_t, int> forwards_left;  // by round, over all tasks
    std::int64_t forwarded = -1;                // the last round up to which none are left
    std::size_t synced = 0;                     // of sync_order_
    std::vector<PendingStep> pending;           // in the order of their syncs
    InstructionId last_backward = kNone;
    std::map<TaskIndex, InstructionId> last_steps;
    std::int64_t steps = 0;
  };
  struct UnderWay {
    MicrobatchId id = 0;
    std::int64_t tokens = 0;
    std::vector<BatchKey> batches;
    std::int32_t stages_left = 0;  // where it has not gone backward
  };
  using Together = std::vector<const UnderWay*>;

  std::int64_t round_of(const BatchKey& key) const {
    return key.global_batch - first_batch_[static_cast<std::size_t>(key.task)];
  }
  Together together(std::span<const ComputeSlot> slots) const;
  void compute(StageIndex index, Kind kind, const Together& microbatches, std::int32_t subgraph);
  void open_gates(StageIndex index, const Together& microbatches);
  void count_forwards(StageIndex index, const Together& microbatches);
  void step_what_has_ended(StageIndex index);
  void count_backwards(StageIndex index, const Together& microbatches);
  void sync_what_is_complete(StageIndex index);
  void sync(StageIndex index, const BatchKey& key);
  template <typename Due>
  void append_pending(StageIndex index, const Due& due);
  InstructionId append_step(StageIndex index, const PendingStep& step);
  InstructionId append_message(StageProgram& stage, Kind kind, const UnderWay& passing, ChannelIndex channel,
                               std::int32_t subgraph, std::span<const InstructionId> waits) const;
  StageProgram& stage_at(StageIndex index) { return program_.stages[static_cast<std::size_t>(index)]; }
  StageState& state_at(StageIndex index) { return states_[static_cast<std::size_t>(index)]; }

  const LoweringRules& rules_;
  std::vector<std::int64_t> first_batch_;  // per task
  ProgramLayout layout_;
  std::unordered_map<MicrobatchId, UnderWay> under_way_;
  std::vector<BatchKey> sync_order_;
  std::int64_t pushed_ = -1;  // the last round
  std::vector<StageState> states_;
  Program program_;  // what has not been taken
};

}  // namespace braid::planner

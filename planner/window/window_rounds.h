#pragma once

#include "planner/window/microbatches.h"

namespace braid::planner {

/// The chunk groups of one hTask in one round of a window.
struct HTaskRound {
  std::int32_t htask = 0;
  std::int64_t round = 0;
  std::vector<std::vector<ChunkGroup>> groups;  ///< per replica, in order
};

/// A window's microbatches, round by round.
class WindowRounds {
 public:
  /// Without the tasks that `input` says are stopped.
  WindowRounds(const FixedPlan& fixed, const WindowInput& input, std::int64_t window);

  /// Of each hTask that has its turn one global batch of every task.
  struct Round {
    std::vector<WindowStep> steps;
    std::vector<HTaskRound> htasks;
  };
  Round next();
  bool done() const { return next_ == steps_.size(); }
  /// Leaves a task out of what is to come.
  void stop(TaskIndex task);

 private:
  const FixedPlan& fixed_;
  const WindowInput& input_;
  std::vector<WindowStep> steps_;
  std::size_t next_ = 0;
  MicrobatchId next_id_ = 0;
  MicrobatchId end_id_ = 0;  // the next window's first
};

/// The microbatches of rounds, ascending by id.
std::vector<Microbatch> microbatches_of(std::span<const HTaskRound> rounds);

}  // namespace braid::planner

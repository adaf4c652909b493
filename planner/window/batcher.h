#pragma once

#include <memory>
#include <optional>

#include "planner/window/microbatches.h"

namespace braid::planner {

/// The chunk groups of one hTask in one round of a window.
struct HTaskRound {
  std::int32_t htask = 0;
  std::int64_t round = 0;
  std::vector<std::vector<ChunkGroup>> groups;  ///< per replica, in order
};

/// A round of a window: of each hTask that has its turn one global batch of every task.
struct Round {
  std::int64_t window = 0;
  std::vector<WindowStep> steps;
  /// In the order in which they enter. Rows of what enters next may be among them.
  std::vector<HTaskRound> htasks;
};

/// The steps of each round of a window.
std::vector<std::vector<WindowStep>> rounds_of(std::span<const WindowStep> steps);

/// How the rows of rounds that follow one another become microbatches. Every row is in one microbatch. Ids ascend, and
/// say which window a microbatch was laid out for.
class Batcher {
 public:
  virtual ~Batcher() = default;
  virtual void push(std::int64_t window, std::vector<WindowStep> round) = 0;
  /// No more rounds come.
  virtual void end() = 0;
  /// The next round whose microbatches are decided, in the order of `push`; nothing where more must be pushed first.
  virtual std::optional<Round> pull() = 0;
  /// Leaves a task out of what is not decided yet.
  virtual void stop(TaskIndex task) = 0;
};

/// What the plan asks for; `fixed` and what `input` refers to must outlive it.
std::unique_ptr<Batcher> make_batcher(const FixedPlan& fixed, const WindowInput& input);

/// The microbatches of rounds, ascending by id.
std::vector<Microbatch> microbatches_of(std::span<const HTaskRound> rounds);

/// Ids by window.
class MicrobatchIds {
 public:
  /// The next one. Throws Error (a check) where a window has more than 2^24.
  MicrobatchId& next(std::int64_t window);

 private:
  std::int64_t window_ = -1;
  MicrobatchId next_ = 0;
};

}  // namespace braid::planner

#pragma once

#include <set>
#include <vector>

#include "planner/plan/plan.h"

namespace braid::planner {

/// A step that a window holds.
struct WindowStep {
  std::int64_t round = 0;  ///< of the window: of every hTask one global batch
  std::int32_t htask = 0;
  TaskIndex task = 0;
  std::int64_t global_batch = 0;
  bool operator==(const WindowStep&) const = default;
};

/// All that lowering a window reads beside the fixed part.
struct WindowInput {
  const workload::Workload& workload;
  const workload::SampleIndex& samples;
  /// Tasks that were stopped (they diverged): they no longer run.
  std::set<TaskIndex> stopped = {};
  /// While planning, tasks never end, as the rate in mid-stream is asked: their first global batches, so many, come
  /// again and again. 0: they end.
  std::int64_t cycle = 0;
  /// Steps that each task had taken when the plan began; empty: none. Not for endless input.
  std::vector<std::int64_t> taken = {};

  bool endless() const { return cycle > 0; }
  std::int64_t taken_by(TaskIndex task) const { return taken.empty() ? 0 : taken[static_cast<std::size_t>(task)]; }
};
inline constexpr std::int64_t kPredictedSteps = 8;

/// Of the plan's own run, to its end.
WindowInput input_of(const Plan& plan, const workload::SampleIndex& samples);

/// How the run goes: the plan's admissions, or its turns, each of as many windows as its longest task takes. Not for
/// endless input.
std::vector<Admission> course_of(const FixedPlan& fixed, const WindowInput& input);
/// How many windows there are until every task has taken its steps. Not for endless input.
std::int64_t window_count(const FixedPlan& fixed, const WindowInput& input);

/// The steps of window `window`: round by round, of each the hTasks that have their turn. With endless input,
/// windows go round the turns, `kQueuedTurn` of each.
std::vector<WindowStep> window_steps(const FixedPlan& fixed, const WindowInput& input, std::int64_t window);
inline constexpr std::int64_t kQueuedTurn = kPredictedSteps;

/// The window after the last of those in which the same hTasks run as in `window`.
std::int64_t end_of_turn(const FixedPlan& fixed, const WindowInput& input, std::int64_t window);

/// Per task, how many steps it has taken when a window begins, those before the plan began included.
std::vector<std::int64_t> steps_before(const FixedPlan& fixed, const WindowInput& input, std::int64_t window);

}  // namespace braid::planner

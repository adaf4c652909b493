#pragma once

#include <set>

#include "planner/durations.h"
#include "planner/plan.h"
#include "planner/verify.h"

namespace braid::planner {

/// Which steps a window holds.
struct WindowSteps {
  std::int32_t htask = 0;
  TaskIndex task = 0;
  std::int64_t global_batch = 0;
};

/// All that lowering a window reads beside the fixed part.
struct WindowInput {
  const workload::Workload& workload;
  const workload::SampleIndex& samples;
  /// Tasks that were stopped (they diverged): they no longer run.
  std::set<TaskIndex> stopped = {};
  /// While planning, tasks never end: the rate in mid-stream is asked.
  bool endless = false;
};

/// How many windows there are until every task has taken its steps. Not for endless input.
std::int64_t window_count(const FixedPlan& fixed, const WindowInput& input);

/// The steps of window `window`, hTask by hTask. With Turns::queued and endless input, windows go round the hTasks,
/// `kQueuedTurn` steps of each.
std::vector<WindowSteps> window_steps(const FixedPlan& fixed, const WindowInput& input, std::int64_t window);
inline constexpr std::int64_t kQueuedTurn = 8;

/// The Program of a window: a pure function of its arguments. Ids continue from window to window.
Program window_program(const FixedPlan& fixed, const WindowInput& input, std::int64_t window);

/// Windows that stand for all where a plan is checked: each hTask's first and the one with its largest microbatch, of
/// at most kScannedWindows evenly over its run. Ascending. Not for endless input.
std::vector<std::int64_t> telling_windows(const FixedPlan& fixed, const WindowInput& input);
inline constexpr std::int64_t kScannedWindows = 2000;

/// What `verify` holds a window's Program against.
VerifyContext verify_context(const FixedPlan& fixed, const WindowInput& input, Bytes capacity);

/// The tasks' adapters, in order.
std::vector<costmodel::AdapterShape> adapters_of(const workload::Workload& workload);

/// What the costs and the memory of the plan's Programs are told by.
TaskAdapters task_adapters(const FixedPlan& fixed, const workload::Workload& workload);
MemoryContext memory_context(const FixedPlan& fixed, const workload::Workload& workload);

}  // namespace braid::planner

#pragma once

#include <atomic>
#include <functional>
#include <set>

#include "exec/runner.h"
#include "planner/plan.h"

namespace braid::exec {

/// One optimizer step of one task.
struct StepMetrics {
  planner::TaskIndex task = 0;
  std::int64_t step = 0;  ///< from 1
  double loss = 0;
  double learning_rate = 0;
  double gradient_norm = 0;  ///< before clipping
  std::int64_t tokens = 0;   ///< data tokens of the global batch
  double seconds = 0;        ///< of the window that it was part of, shared evenly among the task's steps in it
};

/// What one window did, on rank 0.
struct WindowReport {
  std::int64_t window = 0;
  std::int64_t windows = 0;
  double seconds = 0;
  std::int64_t computed_tokens = 0;
  std::vector<StepMetrics> steps;            ///< of a task that diverged, none after the one that did
  std::vector<planner::TaskIndex> diverged;  ///< in this window; they stop
};

struct TrainOptions {
  std::vector<std::int64_t> windows;                   ///< just these, ascending; empty: all
  std::size_t recorded_windows = 16;                   ///< how many, from the first, keep their events for the timeline
  std::function<void(const WindowReport&)> on_window;  ///< on rank 0
  const std::atomic<bool>* stop = nullptr;             ///< set: finish the window, then end
};

/// How a run went; full on rank 0.
struct TrainResult {
  bool interrupted = false;
  std::set<planner::TaskIndex> diverged;
  std::vector<double> window_seconds;
  std::vector<std::int64_t> recorded;        ///< windows whose events were kept
  std::vector<planner::Timeline> timelines;  ///< of those, all ranks, from each window's own beginning
};

/// Runs a plan's windows to their end, all tasks' steps: every rank calls this. The adapters are the runner's
/// afterwards.
TrainResult train(const planner::Plan& plan, const workload::SampleIndex& samples, Runner& runner,
                  Communicator& communicator, const TrainOptions& options);

/// Gathers each task's adapter from the stages and writes folder/TASK as PEFT does, on rank 0; tasks in `without` are
/// left out. All ranks call this.
void write_adapters(const std::filesystem::path& folder, const workload::Workload& workload,
                    const std::set<planner::TaskIndex>& without, Runner& runner, Communicator& communicator);

}  // namespace braid::exec

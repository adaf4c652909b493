#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <set>

#include "exec/checkpoints.h"
#include "exec/runner.h"
#include "planner/plan/plan.h"

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
  double reward_margin = 0, reward_accuracy = 0;  ///< of pairs, as BatchLoss has them
};

/// One evaluation of one task.
struct EvaluationReport {
  planner::TaskIndex task = 0;
  std::int64_t step = 0;  ///< that it has taken
  BatchLoss loss;
  bool best = false;  ///< lower than all before
  double seconds = 0;
  std::int64_t tokens = 0;  ///< of data
};

/// What one window did, on rank 0.
struct WindowReport {
  std::int64_t window = 0;
  std::int64_t windows = 0;
  double seconds = 0;  ///< to its last Step: from its first instruction, or from the last Step of the window before
  std::int64_t computed_tokens = 0;
  double backbone_flops = 0;                 ///< of all ranks
  std::vector<StepMetrics> steps;            ///< of a task that diverged, none after the one that did
  std::vector<planner::TaskIndex> diverged;  ///< in this window; they stop
  std::optional<planner::TaskIndex> cancelled;
};

struct TrainOptions {
  std::vector<std::int64_t> windows;                   ///< just these, in this order; empty: all
  std::size_t recorded_windows = 16;                   ///< how many, from the first, keep their events for the timeline
  std::function<void(const WindowReport&)> on_window;  ///< on rank 0, in order, while the next window runs perhaps
  /// On rank 0, before so many pairs of a task are scored by the model as the task begins with it.
  std::function<void(planner::TaskIndex task, std::size_t pairs)> on_references;
  /// On every rank alike, with nothing under way. Tasks are evaluated where all windows run.
  std::function<void(const EvaluationReport&)> on_evaluation;
  /// Likewise, where a task ends by what evaluations told.
  std::function<void(planner::TaskIndex task, Ended how)> on_ended;
  /// Likewise, where a task takes no further step by this plan, as it waits for others of its search.
  std::function<void(planner::TaskIndex task)> on_held;
  std::function<void()> before_begin;       ///< on every rank, before a window with nothing under way
  const std::atomic<bool>* stop = nullptr;  ///< set: finish what is under way, then end
  /// On rank 0, once a window: a task that is to take no further step. Its adapter stays as it is then.
  std::function<std::optional<planner::TaskIndex>()> cancel;
  /// On rank 0, once a window: whether the run is to go on by another plan, and so to end by this one.
  std::function<bool()> change;

  /// Goes on from there: its windows from the one on that begins so, where the plan has such a one, so that the run
  /// ends as if it had never stopped; else each task from its own step on. `windows` is empty.
  const Checkpoint* begun = nullptr;
  /// Where the run's state is kept, at its end and whenever a task has taken so many steps, or so many seconds went by,
  /// since it was kept before (0: never). Null: nowhere.
  Checkpoints* checkpoints = nullptr;
  std::int64_t checkpoint_steps = 0;
  double checkpoint_seconds = 0;
  std::function<void(const std::string&)> on_notice;  ///< on rank 0: the state could not be kept, and why
  /// On every rank alike, between two windows, once a task has taken its last step, was cancelled
  /// or ended by evaluations.
  std::function<void(planner::TaskIndex task)> on_finished;
};

/// A window whose events were kept.
struct RecordedWindow {
  std::int64_t window = 0;
  bool begins = true;  ///< nothing was under way before it
  planner::Program program;
  planner::Timeline timeline;  ///< of all ranks, since the runner's zero
  double seconds = 0;
};

/// How a run went; full on rank 0.
struct TrainResult {
  bool interrupted = false;
  bool changes = false;                  ///< it ended to go on by another plan
  bool kept = true;                      ///< its last state, where it was to be
  std::vector<std::int64_t> taken = {};  ///< steps, of each task
  EndedTasks ended;                      ///< before their last step
  std::set<planner::TaskIndex> diverged() const;
  std::vector<RecordedWindow> recorded;
};

/// Runs a plan's windows to their end, all tasks' steps: every rank calls this. The adapters are the runner's
/// afterwards. Of a plan that does not drain, windows that follow one another run as one stream: no rank waits for
/// another between them but for messages, and what they left behind is told a window later.
TrainResult train(const planner::Plan& plan, const workload::SampleIndex& samples, Runner& runner,
                  Communicator& communicator, const TrainOptions& options);

/// Gathers a task's adapter from the stages and writes folder/TASK as PEFT does, on rank 0; not where a number is not
/// finite. Returns on rank 0 the largest magnitude of its numbers, infinity where one is not finite. All ranks call
/// this.
double write_adapter(const std::filesystem::path& folder, const workload::Workload& workload, planner::TaskIndex task,
                     Runner& runner, Communicator& communicator);

}  // namespace braid::exec

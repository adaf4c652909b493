#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "costmodel/profile/memory_fit.h"
#include "planner/plan/plan.h"

// mLoRA's task scheduler (§3.4): static priorities, preemption at step borders, first come first served within one
// priority, and never more tasks at once than fit memory.
namespace braid::planner {

/// Those of `in_order` that run at once: the first, by itself where it does not fit; then each, front to back, that
/// still fits beside the ones taken. A task that does not fit holds up none behind it, for it is asked again before
/// them at the next border. `fits` must hold for fewer tasks where it holds for more.
std::vector<TaskIndex> admit(std::span<const TaskIndex> in_order,
                             const std::function<bool(std::span<const TaskIndex>)>& fits);

/// Tasks in turns of those that `admit` lets run at once; tasks of the next turn begin when all of the one before have
/// ended.
std::vector<std::vector<TaskIndex>> admit_in_turns(std::vector<TaskIndex> in_order,
                                                   const std::function<bool(std::span<const TaskIndex>)>& fits);

/// Which hTasks run when, with all known beforehand: hTask i takes `windows[i]` windows. Whenever one of those that run
/// has had its windows, `admit` says anew who runs; what stands later in order may be preempted.
std::vector<Admission> admit_at_borders(std::span<const std::int32_t> in_order, std::vector<std::int64_t> windows,
                                        const std::function<bool(std::span<const std::int32_t>)>& fits);

/// A task that waits or runs: what Eq. 5 tells its memory by is `batch` sequences of `length` tokens.
struct QueuedTask {
  TaskIndex task = 0;
  std::int64_t priority = 0;  ///< higher ones go first
  std::int64_t batch = 0;
  std::int64_t length = 0;
  /// What its adapter keeps of a token (costmodel::kept_width). Tasks of one width share the coefficients
  /// of Eq. 5; of unlike widths β₁ grows with the width, though no faster than in proportion, and the others are alike.
  std::int64_t adapter_width = 1;
};

/// The scheduler as it works beside a trainer, on line: it knows of a task's memory what ran before. A task that has
/// run takes what it took; of one that has not, no more is assumed than all that was measured allows
/// (MemoryLearner::most), so that where Eq. 5 holds within `error`, and every task fits by itself, no stage ever runs
/// out of memory. The first in order always runs, alone where too little is known of it: so every task is measured
/// when its turn has come.
class TaskScheduler {
 public:
  /// `capacities`: per stage, what is there for tasks, beside the backbone. `error`: how far a task may be from Eq. 5,
  /// as a share (the paper keeps 0.25 %).
  explicit TaskScheduler(std::vector<Bytes> capacities, double error = kMemoryError)
      : capacities_(std::move(capacities)), error_(error) {}
  static constexpr double kMemoryError = 0.0025;

  void arrive(const QueuedTask& task);
  void leave(TaskIndex task);
  /// A task's peaks in the iteration that ended, one per stage.
  void measured(TaskIndex task, std::span<const Bytes> peaks);
  /// Who runs until the next step border; those of the last border that are not among them are preempted.
  std::vector<TaskIndex> next() const;
  /// The most that the task is known to take on a stage; nothing before any measurement.
  std::optional<double> most_bytes(TaskIndex task, std::size_t stage = 0) const;

 private:
  struct Entry {
    QueuedTask task;
    std::vector<Bytes> measured;  // per stage; empty before the first measurement
  };
  const Entry& entry(TaskIndex task) const;

  std::vector<Bytes> capacities_;
  double error_;
  std::vector<Entry> queue_;                                              // by priority, then as they came
  std::map<std::int64_t, std::vector<costmodel::MemoryLearner>> widths_;  // per stage
};

/// An hTask as a TaskScheduler comes to know it.
struct LearnedHTask {
  QueuedTask queued;         ///< `task` is the hTask's index
  std::int64_t windows = 0;  ///< that it takes
  std::vector<Bytes> peaks;  ///< per stage: what is measured of it whenever it runs
};

/// admit_at_borders for a scheduler that knows of memory only what ran: what a TaskScheduler decides at every border
/// for hTasks that are all there from the start, in this order within a priority.
std::vector<Admission> admit_while_learning(std::span<const LearnedHTask> htasks, std::vector<Bytes> capacities,
                                            double error = TaskScheduler::kMemoryError);

}  // namespace braid::planner

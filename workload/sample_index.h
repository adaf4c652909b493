#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "workload/sample.h"
#include "workload/workload.h"

namespace braid::workload {

/// A sample of a global batch. `sample` is its id in the dataset.
struct SampleRef {
  std::int64_t sample = 0;
  std::int64_t tokens = 0;
  std::int64_t supervised = 0;
  std::int64_t chosen = 0;  ///< as SampleSize has it

  bool operator==(const SampleRef&) const = default;
};

/// The sizes that a task's length distribution stands for, with max_length and on_too_long applied; all but the first
/// token of a sequence supervised. Of pairs both sequences are drawn. A pure function of the task's name, seed, lengths
/// and those two. Of a task that is evaluated those that it learns from. Throws Error when none is left.
std::vector<SampleSize> sample_sizes(const Task& task);

/// Likewise those that it is evaluated on.
std::vector<SampleSize> held_out_sizes(const Task& task);

/// Which of so many samples a task that evaluates on a fraction of them does not learn from: the same ones whatever else
/// the task says, so that tasks of one dataset are judged by the same samples. Throws Error where none, or all, would be
/// left out.
std::vector<bool> held_out(std::int64_t samples, const Task& task);

/// Optimizer steps of `task` over `samples` samples: `steps`, or as many as its epochs have global batches.
std::int64_t steps_of(const Task& task, std::int64_t samples);

/// Which samples each task trains on in each of its steps.
///
/// An epoch's order is a shuffle keyed by (task seed, epoch) alone; its global batches are consecutive runs of that
/// order, the last one shorter when global_batch_size does not divide the samples. No batch straddles two epochs. So a
/// task's batches do not depend on the other tasks.
///
/// The order last used is kept per task: batches of one epoch cost O(global_batch_size) each, another epoch O(samples).
/// One thread at a time; copies are independent.
class SampleIndex {
 public:
  /// `sizes`[i] are the sizes of the samples of `tasks`[i], by id; none of them empty. `held_out`: likewise of those that
  /// it is evaluated on; none: no task is.
  SampleIndex(std::span<const Task> tasks, std::vector<std::vector<SampleSize>> sizes,
              std::vector<std::vector<SampleSize>> held_out = {});

  /// The samples of optimizer step `step` of a task, from 0. Planning may look past the task's last step.
  std::vector<SampleRef> global_batch(int task, std::int64_t step) const;

  int tasks() const { return static_cast<int>(tasks_.size()); }
  std::int64_t steps(int task) const { return at(task).steps; }
  std::int64_t samples(int task) const { return static_cast<std::int64_t>(at(task).sizes.size()); }
  std::int64_t batches_per_epoch(int task) const { return at(task).batches_per_epoch; }
  const std::vector<SampleSize>& sizes(int task) const { return at(task).sizes; }
  /// Those that the task is evaluated on, with which it learns nothing.
  const std::vector<SampleSize>& held_out(int task) const { return at(task).held_out; }
  /// Sums over a task's samples.
  const SampleSize& total(int task) const { return at(task).total; }

 private:
  struct TaskSamples {
    std::vector<SampleSize> sizes, held_out;
    SampleSize total{0, 0};
    std::uint64_t seed = 0;
    std::int64_t global_batch_size = 0;
    std::int64_t batches_per_epoch = 0;
    std::int64_t steps = 0;
    mutable std::int64_t epoch = -1;  ///< whose order is kept
    mutable std::vector<std::int64_t> order;
  };

  const TaskSamples& at(int task) const;

  std::vector<TaskSamples> tasks_;
};

}  // namespace braid::workload

#include "planner/muxtune/task_fusion.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace braid::planner {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();

/// One value for each pair of numbers below `size`.
template <typename T>
class Table {
 public:
  Table(std::int32_t size, T value) : size_(static_cast<std::size_t>(size)), values_(size_ * size_, value) {}
  T& operator()(std::int32_t row, std::int32_t column) {
    return values_[static_cast<std::size_t>(row) * size_ + static_cast<std::size_t>(column)];
  }
  const T& operator()(std::int32_t row, std::int32_t column) const {
    return values_[static_cast<std::size_t>(row) * size_ + static_cast<std::size_t>(column)];
  }

 private:
  std::size_t size_;
  std::vector<T> values_;
};

/// Of every run (row: first, column: last) what it counts in F, as the first hTask and as a later one.
struct RunSeconds {
  Table<double> as_first;
  Table<double> as_later;
};

RunSeconds seconds_of_runs(const FusionProblem& problem, FusionIncrement increment) {
  RunSeconds seconds{{problem.tasks, kImpossible}, {problem.tasks, kImpossible}};
  for (std::int32_t first = 0; first < problem.tasks; ++first) {
    for (std::int32_t last = first; last < problem.tasks; ++last) {
      if (problem.fits && !problem.fits(first, last)) continue;
      double before_last = 0, slowest = 0;
      for (std::int32_t stage = 0; stage < problem.stages; ++stage) {
        const double here = problem.stage_seconds(first, last, stage);
        BRAID_CHECK(std::isfinite(here) && here >= 0, "tasks {} to {} take {} s on stage {}", first, last, here, stage);
        if (stage + 1 < problem.stages) before_last += here;
        slowest = std::max(slowest, here);
      }
      const double cut = problem.cut ? problem.cut(first, last) : 1;
      const double steady = static_cast<double>(problem.microbatches) * cut * slowest;
      const double whole = before_last + steady;
      seconds.as_first(first, last) = whole;
      seconds.as_later(first, last) = increment == FusionIncrement::one_pass ? steady : whole / problem.stages;
    }
  }
  return seconds;
}

/// The DP's tables. Row n − 1, column m − 1: the first m tasks in n hTasks.
struct Partitions {
  Table<double> best;
  Table<std::int32_t> before_last;  ///< tasks in front of the last hTask
};

Partitions best_partitions(const RunSeconds& seconds, std::int32_t tasks) {
  Partitions partitions{{tasks, kImpossible}, {tasks, 0}};
  for (std::int32_t m = 1; m <= tasks; ++m) partitions.best(0, m - 1) = seconds.as_first(0, m - 1);
  for (std::int32_t n = 2; n <= tasks; ++n) {
    for (std::int32_t m = n; m <= tasks; ++m) {
      double& best = partitions.best(n - 1, m - 1);
      for (std::int32_t i = n - 1; i < m; ++i) {
        const double candidate = partitions.best(n - 2, i - 1) + seconds.as_later(i, m - 1);
        if (candidate >= best) continue;
        best = candidate;
        partitions.before_last(n - 1, m - 1) = i;
      }
    }
  }
  return partitions;
}

std::vector<TaskRun> runs_of(const Partitions& partitions, std::int32_t tasks, std::int32_t htasks) {
  std::vector<TaskRun> runs(static_cast<std::size_t>(htasks));
  std::int32_t end = tasks;
  for (std::int32_t n = htasks; n >= 1; --n) {
    const std::int32_t begin = partitions.before_last(n - 1, end - 1);
    runs[static_cast<std::size_t>(n - 1)] = {begin, end - 1};
    end = begin;
  }
  BRAID_CHECK(end == 0, "{} tasks are in no hTask", end);
  return runs;
}

}  // namespace

std::vector<FusedTasks> fuse_tasks(const FusionProblem& problem, FusionIncrement increment) {
  BRAID_CHECK(problem.tasks >= 0 && problem.stages >= 1 && problem.microbatches >= 1,
              "{} tasks, {} stages, {} microbatches", problem.tasks, problem.stages, problem.microbatches);
  const Partitions partitions = best_partitions(seconds_of_runs(problem, increment), problem.tasks);
  std::vector<FusedTasks> fused;
  for (std::int32_t n = 1; n <= problem.tasks; ++n) {
    const double seconds = partitions.best(n - 1, problem.tasks - 1);
    if (seconds < kImpossible) fused.push_back({runs_of(partitions, problem.tasks, n), seconds});
  }
  return fused;
}

}  // namespace braid::planner

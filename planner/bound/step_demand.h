#pragma once

#include <map>
#include <vector>

#include "planner/bound/lower_bound.h"

namespace braid::planner {

/// A microbatch's size.
struct Extent {
  std::int64_t tokens = 0;
  std::int64_t scored = 0;
  std::int64_t sequences = 0;
  bool operator==(const Extent&) const = default;
};

/// What one step of a task brings at least, in the mean over the steps that a prediction looks at, when each global
/// batch is split into so many microbatches. Microbatches are those that hold rows of the task, with its rows alone.
struct StepDemand {
  double tokens = 0;
  double scored = 0;
  std::map<std::int64_t, double> sequences;  ///< how many, by length
  double microbatches = 0;
  double scored_microbatches = 0;  ///< that the head has rows of
  Extent most;                     ///< no microbatch has more
  Extent least;                    ///< none has less
  std::int64_t shortest = 0;       ///< length in the smallest microbatch; 0: a piece of a sample, of any length

  /// All rows have one length, so that attention over them is one call a microbatch.
  bool alike() const { return shortest > 0 && sequences.size() == 1; }
  bool operator==(const StepDemand&) const = default;
};

/// Counts only what every arrangement computes: data tokens, and rows' padding to their own task's max_length unless
/// chunks of it are skipped. Whatever else kernels process is more work, which takes no less time.
class StepDemands {
 public:
  /// With `scores_all` every row that is computed counts as one with a loss, as the head works on all.
  StepDemands(const BoundScope& scope, const WindowInput& input, bool scores_all);

  const std::vector<TaskIndex>& tasks() const { return tasks_; }
  std::int64_t largest_batch() const;
  /// Of tasks()[place]. Cost: O(microbatches) of whole rows, of rows that are cut as many as there are.
  StepDemand of(std::size_t place, std::int64_t microbatches) const;
  /// Whatever number of microbatches from `first` to `last` it is: what each of those brings at least, and extents that
  /// none goes beyond. Cost: O(rows).
  StepDemand within(std::size_t place, std::int64_t first, std::int64_t last) const;

 private:
  struct Row {
    std::int64_t tokens = 0;
    std::int64_t length = 0;  ///< that attention sees at least, of the last sequence
    std::int64_t scored = 0;
    std::int64_t chosen = 0;  ///< length of a pair's first sequence; 0: there is one alone
  };
  /// A global batch: its rows, and of as many of the first rows as the place says what they add up to.
  struct Batch {
    std::vector<Row> rows;
    std::vector<std::int64_t> tokens = {0}, scored = {0}, sequences = {0};
    std::int64_t scored_rows = 0;

    std::int64_t count() const { return static_cast<std::int64_t>(rows.size()); }
    void add(const Row& row);
    Extent between(std::int64_t first, std::int64_t last) const;
  };
  struct OfTask {
    std::vector<Batch> batches;  ///< by step
    StepDemand whole;            ///< however it is split: tokens, scored, sequences, shortest
  };

  /// Parts that whole rows come in.
  std::int64_t parts(std::int64_t microbatches) const;
  bool splits() const { return scope_.least_chunk == 0 && !scope_.packs; }
  StepDemand of_cut_or_packed(std::size_t place) const;

  const BoundScope& scope_;
  bool scores_all_ = false;
  std::vector<TaskIndex> tasks_;
  std::vector<OfTask> of_tasks_;
};

}  // namespace braid::planner

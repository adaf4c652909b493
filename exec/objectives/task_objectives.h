#pragma once

#include <map>
#include <span>
#include <vector>

#include "exec/objectives/objective.h"
#include "exec/objectives/preference.h"
#include "workload/sample_index.h"

namespace braid::exec {

/// What the samples of a task's global batch came to, those that this rank has scored.
struct BatchLoss {
  double loss = 0;
  double margin = 0;    ///< of pairs: the mean of their margins
  double accuracy = 0;  ///< of pairs: the share whose margin is above 0
};

/// By sample of a dataset; of one that is no pair the first sum alone counts.
using References = std::vector<PairSums>;

/// Each task's own objective, over its global batches: what runs train by.
class TaskObjectives final : public Objective {
 public:
  TaskObjectives(std::span<const workload::Task> tasks, const workload::SampleIndex& samples);

  /// Of the task's samples, those it is evaluated on included, where they are pairs, before any is taken. Until then they are zeros, with which passes
  /// take as long.
  void set_references(planner::TaskIndex task, References references);

  /// Of the task's samples from `first` on, whose token losses sum up to `sums` as a model has them: what the objective
  /// comes to over all of them, as over one global batch.
  BatchLoss loss_of(planner::TaskIndex task, const References& sums, std::span<const workload::Sample> samples,
                    std::size_t first) const;

  double factor(const SampleRows& rows) const override;
  void take(const SampleRows& rows, double weighted_loss) override;
  bool has_late_factor(const SampleRows& rows) const override { return of(rows).objective.pairs(); }
  double late_factor(const SampleRows& rows) const override;

  /// Of a global batch all of whose samples have gone backward; they are forgotten.
  BatchLoss finish(planner::TaskIndex task, std::int64_t global_batch);

 private:
  struct Pair {
    std::int64_t number = 0;
    PairSums sums{};
  };
  /// Of one task.
  struct State {
    workload::Objective objective;
    mutable std::int64_t scaled = -1;  ///< the global batch that `scale` is of
    mutable double scale = 0;
    double sum = 0;
    References references;
    std::map<std::pair<std::int64_t, std::int32_t>, Pair> pairs;  ///< under way, by global batch and place in it
  };

  State& of(const SampleRows& rows) { return states_[static_cast<std::size_t>(rows.sample.task)]; }
  const State& of(const SampleRows& rows) const { return states_[static_cast<std::size_t>(rows.sample.task)]; }
  double scale(planner::TaskIndex task, std::int64_t global_batch) const;
  PairTerms terms(const State& state, const Pair& pair) const;

  const workload::SampleIndex& samples_;
  std::vector<State> states_;
};

}  // namespace braid::exec

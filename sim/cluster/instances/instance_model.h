#pragma once

#include "sim/cluster/instances/estimator_pool.h"
#include "sim/cluster/instances/once_each.h"
#include "sim/cluster/instances/task_sets.h"

namespace braid::sim {

/// What a step of one task costs on an instance of its own.
struct KindCost {
  double step_seconds = 0;
  double flops = 0;  ///< of the backbone
};

/// How instances of one size run tasks under one policy: the estimates of a StepEstimator, each made once, for any
/// number of simulations at a time.
class InstanceModel {
 public:
  /// `kinds`: the tasks that jobs are drawn from, at most so many of which run together; `instance`: the GPUs of one
  /// instance. Throws Error when no kind fits memory.
  InstanceModel(workload::Workload kinds, workload::Cluster instance, costmodel::Profile profile,
                const planner::PolicyChoice& choice, std::int32_t most_tasks, const planner::Overrides& overrides = {});

  const planner::PolicyChoice& choice() const { return choice_; }
  const workload::Workload& kinds() const { return kinds_; }
  const workload::Cluster& instance() const { return instance_; }
  const costmodel::Profile& profile() const { return cost_.profile(); }

  /// Nothing where the tasks do not fit memory.
  std::optional<SetRate> rate(const std::vector<std::int32_t>& counts);
  /// Nothing for a kind that does not fit memory.
  const std::vector<std::optional<KindCost>>& alone() const { return alone_; }

  /// How far the estimate of a set is off a full replay, as a share of that.
  double error(const std::vector<std::int32_t>& counts);

 private:
  workload::Workload kinds_;
  workload::Cluster instance_;
  workload::SampleIndex samples_;
  costmodel::CostModel cost_;
  planner::PolicyChoice choice_;
  EstimatorPool estimators_;
  std::vector<std::optional<KindCost>> alone_;
  OnceEach<std::optional<SetRate>> rates_;
  OnceEach<double> errors_;
};

}  // namespace braid::sim

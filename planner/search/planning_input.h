#pragma once

#include <functional>

#include "planner/plan/plan_hashes.h"
#include "planner/plan/policy.h"
#include "planner/window/predict.h"

namespace braid::planner {

/// All that planning reads.
struct PlanningInput {
  const workload::Workload& workload;
  const workload::Cluster& cluster;
  const workload::SampleIndex& samples;
  const costmodel::CostModel& cost;
  Judge judge;
  Overrides overrides;
  Preference preference = Preference::speed;
  /// Told during the search about how much of it is done, 0 to 1.
  std::function<void(double share)> on_progress = {};
  /// Of a policy that unites others: no further search begins so long after the first; 0: all are done. What is not
  /// done may differ from run to run, so that the plan says it was truncated.
  double budget_seconds = 0;
  /// Takes models for other solvers, and gives a solution; nullptr: nothing does.
  milp::Exchange* models = nullptr;
  /// Of files that have not changed.
  DataHashes known_hashes = {};

  /// Of other tasks, silently.
  PlanningInput of(const workload::Workload& others, const workload::SampleIndex& their_samples) const {
    return {others, cluster, their_samples, cost, judge, overrides, preference, {}, budget_seconds};
  }
  /// The same of other tasks.
  PlanningInput with(const workload::Workload& others, const workload::SampleIndex& their_samples) const {
    return {others,     cluster,     their_samples,  cost,   judge,       overrides,
            preference, on_progress, budget_seconds, models, known_hashes};
  }
  /// The same with other overrides.
  PlanningInput with(const Overrides& others) const {
    return {workload, cluster, samples, cost, judge, others, preference, on_progress, budget_seconds, models};
  }
};

}  // namespace braid::planner

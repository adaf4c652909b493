#pragma once

#include <memory>
#include <span>

#include "planner/estimator/layouts.h"
#include "planner/search/make_plan.h"

namespace braid::planner {

/// What a step of some tasks takes.
struct StepEstimate {
  double step_seconds = 0;
  double busy_gpu_seconds = 0;  ///< of a step, computing, over all ranks
  std::int32_t layout = 0;      ///< estimates of one layout have their layers on the same ranks
};

/// Tells what steps of sets of tasks take on one cluster under one policy, with most of the search left out: for
/// simulations that ask for thousands of sets. The kinds are the tasks of a workload; a set has so many of each.
/// Deterministic, but for the numbers of layouts, which are in the order in which they are met. Not for concurrent use.
class StepEstimator {
 public:
  virtual ~StepEstimator() = default;

  /// Of so many tasks of each kind, at least one in all; nothing where they do not fit memory.
  virtual std::optional<StepEstimate> estimate(std::span<const std::int32_t> counts) = 0;

  /// What a full prediction says of the same plan: several steps, samples as they are drawn. For sets that have an
  /// estimate.
  virtual double replayed(std::span<const std::int32_t> counts) = 0;

  /// The plan of one task of a kind; nothing where it does not fit memory.
  const std::optional<Plan>& alone(std::size_t kind) const { return alone_[kind]; }
  std::size_t kinds() const { return alone_.size(); }

 protected:
  /// The plan of the one task that is counted.
  const std::optional<Plan>& only(std::span<const std::int32_t> counts) const;

  explicit StepEstimator(std::shared_ptr<Layouts> layouts) : layouts_(std::move(layouts)) {}
  StepEstimate estimate_of(const FixedPlan& fixed, const Prediction& predicted);
  std::optional<StepEstimate> estimate_of(const std::optional<Plan>& plan);

  std::vector<std::optional<Plan>> alone_;  // per kind

 private:
  std::shared_ptr<Layouts> layouts_;
};

/// The kinds are the tasks of the input's workload, which has lengths in place of data; up to `most_tasks` tasks run
/// together. Estimators that share `layouts` number them alike. Throws Error when no kind fits memory by itself. What
/// the input refers to must outlive the estimator.
std::unique_ptr<StepEstimator> make_step_estimator(const PlanningInput& input, const PolicyChoice& choice,
                                                   std::int32_t most_tasks,
                                                   std::shared_ptr<Layouts> layouts = std::make_shared<Layouts>());

}  // namespace braid::planner

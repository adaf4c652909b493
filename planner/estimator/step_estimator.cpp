#include "planner/estimator/step_estimator.h"

#include <algorithm>

#include "planner/estimator/learned_estimator.h"
#include "planner/estimator/searched_estimator.h"
#include "planner/estimator/united_estimator.h"

namespace braid::planner {

const std::optional<Plan>& StepEstimator::only(std::span<const std::int32_t> counts) const {
  return alone_[static_cast<std::size_t>(std::find(counts.begin(), counts.end(), 1) - counts.begin())];
}

StepEstimate StepEstimator::estimate_of(const FixedPlan& fixed, const Prediction& predicted) {
  const double busy = (1 - predicted.bubble_ratio) * static_cast<double>(fixed.ranks());
  return {predicted.step_seconds, busy * predicted.step_seconds, layouts_->number(fixed.deployment)};
}

std::optional<StepEstimate> StepEstimator::estimate_of(const std::optional<Plan>& plan) {
  if (!plan) return std::nullopt;
  return estimate_of(plan->fixed, plan->predicted);
}

std::unique_ptr<StepEstimator> make_step_estimator(const PlanningInput& input, const PolicyChoice& choice,
                                                   std::int32_t most_tasks, std::shared_ptr<Layouts> layouts) {
  if (choice.policy->unites()) return std::make_unique<UnitedEstimator>(input, choice, most_tasks, std::move(layouts));
  if (choice.policy->proposes()) return std::make_unique<SearchedEstimator>(input, choice, std::move(layouts));
  return std::make_unique<LearnedEstimator>(input, choice, most_tasks, std::move(layouts));
}

}  // namespace braid::planner

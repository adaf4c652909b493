#pragma once

#include <map>

#include "planner/estimator/step_estimator.h"
#include "planner/estimator/task_counts.h"

namespace braid::planner {

/// Of a policy that proposes whole plans: those of each set are judged in full, with samples as they are drawn.
class SearchedEstimator final : public StepEstimator {
 public:
  SearchedEstimator(const PlanningInput& input, const PolicyChoice& choice, std::shared_ptr<Layouts> layouts);

  std::optional<StepEstimate> estimate(std::span<const std::int32_t> counts) override;
  double replayed(std::span<const std::int32_t> counts) override;

 private:
  PlanningInput input_;
  PolicyChoice choice_;
};

}  // namespace braid::planner

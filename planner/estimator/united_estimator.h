#pragma once

#include "planner/estimator/step_estimator.h"

namespace braid::planner {

/// Of a policy that unites others: the least of what their estimators tell. Those that are the fastest on no kind by
/// itself, nor on any of a few telling sets, are not asked again.
class UnitedEstimator final : public StepEstimator {
 public:
  UnitedEstimator(const PlanningInput& input, const PolicyChoice& choice, std::int32_t most_tasks,
                  std::shared_ptr<Layouts> layouts);

  std::optional<StepEstimate> estimate(std::span<const std::int32_t> counts) override;
  double replayed(std::span<const std::int32_t> counts) override;

 private:
  struct Told {
    StepEstimate estimate;
    StepEstimator* by = nullptr;
  };

  std::optional<Told> least(std::span<const std::int32_t> counts);

  std::vector<std::unique_ptr<StepEstimator>> members_;
};

}  // namespace braid::planner

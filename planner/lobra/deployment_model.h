#pragma once

#include "planner/lobra/deployment_search.h"
#include "planner/milp/solve.h"

namespace braid::planner {

/// The deployment as a mixed-integer program (LobRA Eq. 2): how many replicas of each configuration, and of each load
/// how many sequences of a length they take, in fractions, so that the sum of the loads' seconds is the least. Numbers
/// of replicas are binaries, one for each number that the GPUs allow, so that replicas times seconds is linear.
/// `most_seconds`: no better solution takes as long; all loads together.
milp::Model deployment_model(std::span<const Configuration> configurations, std::int64_t gpus,
                             const ExpectedLoads& loads, double most_seconds);

/// How many replicas of each configuration a solution has, and what it takes.
DeploymentChoice deployment_of(std::span<const double> values, std::span<const Configuration> configurations,
                               std::int64_t gpus, const milp::Model& model);

/// The fastest dispatch of fractional sequences to such replicas, exactly: values of a deployment_model, and what it
/// takes. Infinity, and no values, where something is held by nobody.
struct FractionalDispatch {
  std::vector<double> values = {};
  double seconds = milp::kInfinity;
};
FractionalDispatch fractional_dispatch(std::span<const Configuration> configurations, std::int64_t gpus,
                                       std::span<const std::int64_t> replicas, const ExpectedLoads& loads);

}  // namespace braid::planner

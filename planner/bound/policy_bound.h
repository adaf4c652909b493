#pragma once

#include <span>

#include "planner/bound/lower_bound.h"
#include "planner/plan/policy.h"

namespace braid::planner {

/// What a policy was free to choose on the deployment that it got.
BoundScope bound_scope(const Arrangement& arrangement, const Overrides& overrides);

/// What no plan is faster than that a policy could have made in place of this one, on any deployment of its grid: the
/// least of their lower bounds, save of those whose ranks, of `capacity` each (0: not limited), cannot hold the
/// weights.
LowerBound policy_bound(const Arrangement& arrangement, std::span<const std::vector<ReplicaShape>> grid,
                        const Overrides& overrides, const WindowInput& window, const costmodel::CostModel& cost,
                        BestRates& rates, Bytes capacity);

/// What no plan of any policy is faster than whose rows have at least this padding and whose adapters run in one of
/// these ways, on up to so many ranks, sequence-parallel ones or not.
double work_of_any_policy(Padding padding, std::span<const costmodel::AdapterKernels> kernels, bool shares_tokens,
                          std::int64_t ranks, const WindowInput& window, const costmodel::CostModel& cost,
                          BestRates& rates);

}  // namespace braid::planner

#pragma once

#include "planner/plan/plan.h"
#include "workload/workload.h"

namespace braid::exec {

/// Throws Error that names the first feature of a plan which this build cannot execute, and what to plan with instead:
/// sequence parallelism, adapter kernels of GPUs, weights in shares over replicas of several ranks.
void check_executable(const planner::FixedPlan& fixed);

/// Throws Error for an adapter beside a module that the backbone's family does not have.
void check_targets(const workload::Workload& workload);

}  // namespace braid::exec

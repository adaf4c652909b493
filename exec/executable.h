#pragma once

#include "planner/plan/plan.h"

namespace braid::exec {

/// Throws Error that names the first feature of a plan which this build cannot execute, and what to plan with instead:
/// several replicas, tensor parallelism, interleaved model chunks, adapter kernels of GPUs.
void check_executable(const planner::FixedPlan& fixed);

}  // namespace braid::exec

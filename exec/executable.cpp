#include "exec/executable.h"

#include "base/error.h"

namespace braid::exec {

void check_executable(const planner::FixedPlan& fixed) {
  if (fixed.shards_weights)
    throw error("the plan shards weights over replicas, which this build cannot execute; plan with another policy");
  for (const planner::ReplicaShape& replica : fixed.deployment) {
    if (replica.sequence_parallel)
      throw error("the plan has sequence parallelism, which is simulated only; plan with sequence_parallel=off");
  }
  if (fixed.adapter_kernels != costmodel::AdapterKernels::separate)
    throw error(
        "the plan has '{}' adapter kernels, which this build cannot execute; plan with kernels=separate and pruning=on",
        name(fixed.adapter_kernels));
}

}  // namespace braid::exec

#include "exec/executable.h"

#include "base/error.h"
#include "planner/plan/deployment.h"

namespace braid::exec {

void check_executable(const planner::FixedPlan& fixed) {
  if (fixed.deployment.size() != 1)
    throw error("the plan has {} replicas, which this build cannot execute; plan one", fixed.deployment.size());
  if (fixed.deployment[0].tp != 1)
    throw error("the plan has tensor parallelism {}, which this build cannot execute; plan with --tp 1",
                fixed.deployment[0].tp);
  if (fixed.deployment[0].model_chunks != 1)
    throw error(
        "the plan interleaves {} model chunks a stage, which this build cannot execute; plan with another policy",
        fixed.deployment[0].model_chunks);
  if (recomputes(fixed.deployment))
    throw error("the plan recomputes layers, which this build cannot execute; plan with recompute=none");
  if (fixed.adapter_kernels != costmodel::AdapterKernels::separate)
    throw error(
        "the plan has '{}' adapter kernels, which this build cannot execute; plan with kernels=separate and pruning=on",
        name(fixed.adapter_kernels));
}

}  // namespace braid::exec

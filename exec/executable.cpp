#include "exec/executable.h"

#include <algorithm>

#include "base/error.h"
#include "costmodel/shapes/family.h"

namespace braid::exec {

void check_executable(const planner::FixedPlan& fixed) {
  for (const planner::ReplicaShape& replica : fixed.deployment) {
    if (fixed.shards_weights && (replica.tp > 1 || replica.stages() > 1))
      throw error(
          "the plan shards weights over replicas of several ranks, which cannot be executed; plan with "
          "--policy megatron-fsdp");
    if (replica.sequence_parallel)
      throw error("the plan has sequence parallelism, which is simulated only; plan with sequence_parallel=off");
  }
  if (fixed.adapter_kernels != costmodel::AdapterKernels::separate)
    throw error(
        "the plan has '{}' adapter kernels, which this build cannot execute; plan with kernels=separate and pruning=on",
        name(fixed.adapter_kernels));
}

void check_targets(const workload::Workload& workload) {
  const costmodel::Architecture architecture = workload.backbone.architecture;
  const costmodel::FamilyNames& family = costmodel::family_names(architecture);
  std::vector<std::string_view> own;
  for (const costmodel::Module module : costmodel::kModules) {
    if (!family.name(module).empty()) own.push_back(costmodel::target_name(architecture, module));
  }
  for (const workload::Task& task : workload.tasks) {
    for (const costmodel::Module module : costmodel::kModules) {
      if (task.adapter.has(module) && family.name(module).empty())
        throw error(
            "task '{}': {} has no linear layer {} of its own to train an adapter on; name some of {} in "
            "target_modules",
            task.name, workload.backbone.name, module_name(module), fmt::join(own, ", "));
    }
  }
}

}  // namespace braid::exec

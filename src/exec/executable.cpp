#include "exec/executable.h"

#include <algorithm>

#include "base/error.h"
#include "planner/window/alignment.h"

namespace braid::exec {
namespace {

/// Chunks as long as every pack cut no sample.
void check_chunks(const planner::FixedPlan& fixed, const workload::Workload& workload) {
  if (fixed.chunk_size == 0) return;
  std::int64_t longest = fixed.pack_length;
  for (const workload::Task& task : workload.tasks) longest = std::max(longest, task.max_length);
  if (longest <= fixed.chunk_size) return;
  throw error(
      "the plan cuts samples into chunks of {} tokens, which this build cannot execute; plan with muxtune:chunk={}, "
      "muxtune:alignment=zero or muxtune:alignment=packed",
      fixed.chunk_size, (longest + planner::kChunkUnit - 1) / planner::kChunkUnit * planner::kChunkUnit);
}

}  // namespace

void check_executable(const planner::FixedPlan& fixed, const workload::Workload& workload) {
  if (fixed.deployment.size() != 1)
    throw error("the plan has {} replicas, which this build cannot execute; plan one", fixed.deployment.size());
  if (fixed.deployment[0].tp != 1)
    throw error("the plan has tensor parallelism {}, which this build cannot execute; plan with --tp 1",
                fixed.deployment[0].tp);
  if (fixed.deployment[0].model_chunks != 1)
    throw error(
        "the plan interleaves {} model chunks a stage, which this build cannot execute; plan with another policy",
        fixed.deployment[0].model_chunks);
  check_chunks(fixed, workload);
  if (fixed.adapter_kernels != costmodel::AdapterKernels::separate)
    throw error(
        "the plan has '{}' adapter kernels, which this build cannot execute; plan with kernels=separate and pruning=on",
        name(fixed.adapter_kernels));
}

}  // namespace braid::exec

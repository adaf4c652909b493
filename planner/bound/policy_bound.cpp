#include "planner/bound/policy_bound.h"

#include <algorithm>

#include "base/error.h"
#include "planner/plan/stash_budget.h"
#include "planner/window/unit_stream.h"

namespace braid::planner {
namespace {

std::size_t tasks_of(const FixedPlan& fixed) {
  std::size_t tasks = 0;
  for (const std::vector<TaskIndex>& htask : fixed.htasks) tasks += htask.size();
  return tasks;
}

/// Whether the weights alone are more than a rank has memory for, on some stage.
bool cannot_hold_weights(const std::vector<ReplicaShape>& deployment, const FixedPlan& fixed,
                         const costmodel::BackboneShape& backbone, Bytes capacity) {
  if (capacity <= 0) return false;
  const Bytes shares = fixed.shards_weights ? static_cast<Bytes>(deployment.size()) : 1;
  for (const costmodel::StageShape& stage : stage_shapes(deployment.front())) {
    const Bytes weights = costmodel::backbone_bytes(backbone, stage, fixed.storage);
    if (fixed.backbone_copies * weights / shares > capacity) return true;
  }
  return false;
}

}  // namespace

BoundScope bound_scope(const Arrangement& arrangement, const Overrides& overrides) {
  const FixedPlan& fixed = arrangement.fixed;
  BoundScope scope;
  scope.deployment = fixed.deployment;
  scope.padding = fixed.padding;
  scope.least_chunk = scope.most_chunk = fixed.chunk_size;
  for (const std::int64_t size : arrangement.chunk_sizes) {
    scope.least_chunk = std::min(scope.least_chunk, size);
    scope.most_chunk = std::max(scope.most_chunk, size);
  }
  scope.packs = fixed.pack_length > 0 && fixed.chunk_size == 0;
  scope.skips_padding = fixed.skips_padding;
  scope.kernels = fixed.adapter_kernels;
  scope.one_by_one = !fixed.turns.empty() && fixed.turns.size() == fixed.htasks.size();
  scope.shares_microbatches = streams(fixed) || arrangement.may_fuse ||
                              fixed.pipeline == PipelineTemplate::structured || fixed.htasks.size() < tasks_of(fixed);
  const bool interleaves = fixed.pipeline == PipelineTemplate::structured || fixed.pipeline == PipelineTemplate::stream;
  scope.joins_htasks = interleaves && tasks_of(fixed) > 1;
  scope.gathers_weights = fixed.shards_weights;
  scope.drains = !streams(fixed);
  scope.microbatches = overrides.microbatches.value_or(0);
  return scope;
}

LowerBound policy_bound(const Arrangement& arrangement, std::span<const std::vector<ReplicaShape>> grid,
                        const Overrides& overrides, const WindowInput& window, const costmodel::CostModel& cost,
                        BestRates& rates, Bytes capacity) {
  const FixedPlan& fixed = arrangement.fixed;
  BoundScope scope = bound_scope(arrangement, overrides);
  // What recomputes as much as it has to may be one of plans that recompute less.
  for (const std::vector<ReplicaShape>& deployment : grid) {
    if (same_places(deployment, fixed.deployment)) scope.deployment = deployment;
  }
  LowerBound least = lower_bound(scope, window, cost, rates);
  least.deployment_step_seconds = least.step_seconds;
  for (const std::vector<ReplicaShape>& deployment : grid) {
    if (same_places(deployment, fixed.deployment) ||
        cannot_hold_weights(deployment, fixed, window.workload.backbone, capacity))
      continue;
    scope.deployment = deployment;
    const LowerBound other = lower_bound(scope, window, cost, rates);
    if (other.step_seconds >= least.step_seconds) continue;
    least.step_seconds = other.step_seconds;
    least.binds = fmt::format("{} of {}", other.binds, describe(deployment));
  }
  return least;
}

}  // namespace braid::planner

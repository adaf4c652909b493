#include "planner/bound/policy_bound.h"

#include <algorithm>
#include <limits>
#include <set>

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
  scope.padding = fixed.batching.padding;
  scope.least_chunk = scope.most_chunk = fixed.batching.chunk_size;
  for (const std::int64_t size : arrangement.chunk_sizes) {
    scope.least_chunk = std::min(scope.least_chunk, size);
    scope.most_chunk = std::max(scope.most_chunk, size);
  }
  // Rows of any lengths may come together where they are dispatched, or fill bins.
  scope.packs =
      (fixed.batching.pack_length > 0 && fixed.batching.chunk_size == 0) || fixed.dispatch || fixed.batching.bins;
  scope.skips_padding = fixed.batching.skips_padding;
  scope.kernels = fixed.adapter_kernels;
  scope.one_by_one = !fixed.schedule.turns.empty() && fixed.schedule.turns.size() == fixed.htasks.size();
  scope.shares_microbatches = streams(fixed) || arrangement.may_fuse ||
                              fixed.schedule.pipeline == PipelineTemplate::structured ||
                              fixed.htasks.size() < tasks_of(fixed);
  const bool interleaves =
      fixed.schedule.pipeline == PipelineTemplate::structured || fixed.schedule.pipeline == PipelineTemplate::stream;
  scope.joins_htasks = interleaves && tasks_of(fixed) > 1;
  scope.gathers_weights = fixed.shards_weights;
  scope.drains = !streams(fixed);
  scope.microbatches = overrides.microbatches.value_or(0);
  return scope;
}

namespace {

/// Rows in any microbatches, of all tasks.
BoundScope of_any_policy(Padding padding) {
  BoundScope scope;
  scope.padding = padding;
  scope.packs = true;
  scope.drains = false;
  return scope;
}

/// Of a replica of one stage, were its work spread over so many ranks.
double seconds_of_work(const BoundScope& scope, std::int64_t ranks, const WindowInput& window,
                       const costmodel::CostModel& cost, BestRates& rates) {
  const auto tp = static_cast<double>(scope.deployment.front().tp);
  return work_bound(scope, window, cost, rates) * tp / static_cast<double>(ranks);
}

/// Where replicas might have been unlike, or plans any policy's: all work at the fewest GPU-seconds that replicas of
/// some shard count do it in.
LowerBound bound_of_mixes(const Arrangement& arrangement, std::span<const std::vector<ReplicaShape>> grid,
                          const Overrides& overrides, const WindowInput& window, const costmodel::CostModel& cost,
                          BestRates& rates) {
  const FixedPlan& fixed = arrangement.fixed;
  BoundScope scope = bound_scope(arrangement, overrides);
  const costmodel::BackboneShape& backbone = window.workload.backbone;
  std::int64_t most_ranks = fixed.ranks();
  std::set<std::int32_t> deployed, all;
  for (const ReplicaShape& replica : fixed.deployment) deployed.insert(replica.tp);
  all = deployed;
  // What recomputes as much as it has to may be one of plans that recompute less.
  costmodel::RecomputeKind recompute = costmodel::RecomputeKind::none;
  for (const std::vector<ReplicaShape>& deployment : grid) {
    const ReplicaShape& replica = deployment.front();
    recompute = replica.recompute_of(0).kind;
    all.insert(replica.tp);
    const std::int64_t ranks = std::int64_t{replica.tp} * replica.stages();
    most_ranks = std::max(most_ranks, static_cast<std::int64_t>(deployment.size()) * ranks);
  }
  // tp alone may be 1 here, of which nothing is told: any replica that shares tokens says that all may.
  bool shares = false;
  for (const ReplicaShape& replica : fixed.deployment) shares = shares || replica.sequence_parallel;
  for (const std::vector<ReplicaShape>& deployment : grid) shares = shares || deployment.front().sequence_parallel;
  const bool shards = !overrides.tp && !cost.profile().device.empty();
  for (std::int32_t tp = 1; shards && tp <= most_ranks; tp *= 2) {
    if (splits_heads(backbone, tp)) all.insert(tp);
  }
  std::vector<costmodel::AdapterKernels> kernels = {scope.kernels};
  if (arrangement.united) {
    scope = of_any_policy(Padding::none);
    recompute = costmodel::RecomputeKind::none;
    kernels = {costmodel::AdapterKernels::separate, costmodel::AdapterKernels::fused};
    if (cost.profile().device.empty()) kernels.pop_back();
  }
  const auto least_of = [&](const std::set<std::int32_t>& degrees, std::int64_t ranks) {
    LowerBound least;
    for (const std::int32_t tp : degrees) {
      scope.deployment = deploy(backbone.layers, tp, 1, 1);
      recompute_all(recompute, scope.deployment);
      if (shares) share_tokens(scope.deployment);
      for (const costmodel::AdapterKernels used : kernels) {
        scope.kernels = used;
        const double seconds = seconds_of_work(scope, ranks, window, cost, rates);
        if (!least.binds.empty() && seconds >= least.step_seconds) continue;
        least.step_seconds = seconds;
        least.binds = fmt::format("compute of {} ranks at tp {}", ranks, tp);
      }
    }
    return least;
  };
  LowerBound least = least_of(all, most_ranks);
  least.deployment_step_seconds = least_of(deployed, fixed.ranks()).step_seconds;
  return least;
}

}  // namespace

double work_of_any_policy(Padding padding, std::span<const costmodel::AdapterKernels> kernels, bool shares_tokens,
                          std::int64_t ranks, const WindowInput& window, const costmodel::CostModel& cost,
                          BestRates& rates) {
  BoundScope scope = of_any_policy(padding);
  double least = std::numeric_limits<double>::infinity();
  const bool shards = !cost.profile().device.empty();
  for (std::int32_t tp = 1; tp == 1 || (shards && tp <= ranks); tp *= 2) {
    if (!splits_heads(window.workload.backbone, tp)) continue;
    scope.deployment = deploy(window.workload.backbone.layers, tp, 1, 1);
    if (shares_tokens) share_tokens(scope.deployment);
    for (const costmodel::AdapterKernels used : kernels) {
      scope.kernels = used;
      least = std::min(least, seconds_of_work(scope, ranks, window, cost, rates));
    }
  }
  return least;
}

LowerBound policy_bound(const Arrangement& arrangement, std::span<const std::vector<ReplicaShape>> grid,
                        const Overrides& overrides, const WindowInput& window, const costmodel::CostModel& cost,
                        BestRates& rates, Bytes capacity) {
  if (arrangement.may_differ || arrangement.united)
    return bound_of_mixes(arrangement, grid, overrides, window, cost, rates);
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

#pragma once

#include "costmodel/profile/cost_model.h"
#include "planner/bound/best_rate.h"
#include "planner/plan/plan.h"
#include "planner/window/window_steps.h"

// How fast a deployment can be at the best, whatever a policy decides.
namespace braid::planner {

/// What a policy has to choose from. All else is free: hTasks, buckets, template, orders, pack length.
struct BoundScope {
  std::vector<ReplicaShape> deployment;  ///< like replicas
  Padding padding = Padding::none;
  std::int64_t least_chunk = 0;  ///< tokens of the shortest chunks samples may be cut into; 0: they are not cut
  std::int64_t most_chunk = 0;   ///< and of the longest; 0: of any length
  bool packs = false;            ///< whole samples may lie in as few microbatches as packs hold them
  bool skips_padding = false;    ///< chunks of padding alone are not computed
  costmodel::AdapterKernels kernels = costmodel::AdapterKernels::separate;
  bool one_by_one = false;          ///< hTasks are queued: one never runs beside another
  bool shares_microbatches = true;  ///< rows of several tasks may go through in one microbatch, or one bucket's clock
  /// Microbatches of several hTasks may go through as one clock, collectives of one beside compute of another.
  bool joins_htasks = true;
  bool gathers_weights = false;   ///< passes wait for weights (FSDP); of replicas of one stage and one shard
  bool drains = true;             ///< the pipeline is empty between steps
  std::int64_t microbatches = 0;  ///< that each global batch is split into; 0: any number
};

/// No plan in this scope has a smaller `step_seconds` by `predict` with Outlook::full: the mean over the first
/// kPredictedSteps steps of every task that was not stopped, of a stream when they come again.
///
/// For each number of microbatches, what each stage, link and task needs at least goes into `pipeline_bound`; the least
/// of those is the bound. It rests on the cost model's law that nothing takes less time for more work, and holds where
/// collectives go beside compute. The arguments stand in lower_bound.cpp. Throws Error as the cost model does.
/// Cost: O(tasks × (kinds of stages × lengths + rows of the largest global batch)), times the logarithm of those rows
/// (bounded_together).
LowerBound lower_bound(const BoundScope& scope, const WindowInput& input, const costmodel::CostModel& cost);

/// No less than what the passes of such a step take on one replica, of one stage, that does all of it, as far as they
/// are the shards' compute, or keep it waiting. Split over stages and replicas it is no less work.
double work_bound(const BoundScope& scope, const WindowInput& input, const costmodel::CostModel& cost,
                  BestRates& rates);

/// Numbers of microbatches from 1 to `most` in runs [first, last] that have a bound in common: small ones each its own,
/// of larger ones those within a 32nd, so that there are few.
std::vector<std::pair<std::int64_t, std::int64_t>> bounded_together(std::int64_t most);

/// The same for many scopes: remembers what work costs at the least.
LowerBound lower_bound(const BoundScope& scope, const WindowInput& input, const costmodel::CostModel& cost,
                       BestRates& rates);

}  // namespace braid::planner

#pragma once

#include "planner/search/planning_input.h"

namespace braid::planner {

/// Plans one policy by a grid search: every deployment that its system has on this cluster, with every power of two of
/// microbatches and, on the best deployments, numbers between, arranged by the policy and glanced at unless a lower
/// bound tells that it cannot be near the fastest; of the fastest few that fit memory the one whose full
/// prediction takes the least time is verified and returned. Deterministic: it counts replays, not seconds. On CPUs
/// the search stays within what `braid train` can run there; what the overrides ask for is planned all the same.
///
/// Throws Error when there are more stages than layers, more ranks than the cluster has, or when nothing fits memory;
/// the message names the task, the rank, the bytes it misses by and the cheapest change that makes it fit (remedy.h).
Plan make_plan(const PlanningInput& input, const PolicyChoice& choice);

/// Throws the Errors about stages, layers, ranks, microbatches and options that make_plan would, before anything is
/// measured: all but that nothing fits memory, and what a profile that the cluster names has not.
void check_placement(const workload::Workload& workload, const workload::Cluster& cluster, const Overrides& overrides,
                     const PolicyChoice& choice);

/// Likewise what no policy could do.
void check_overrides(const workload::Workload& workload, const workload::Cluster& cluster, const Overrides& overrides);

}  // namespace braid::planner

#pragma once

#include "planner/search/bench.h"

/// What a user asks of a plan beside its policy (--tp, --pp, --microbatches, options): whether ranks and workload have
/// it, before anything is searched.
namespace braid::planner {

/// Samples of the largest global batch of a task: more microbatches than these would be empty.
std::int64_t largest_batch(const workload::Workload& workload);

/// The part of a policy's parallelism that is searched: on CPUs what `braid train` runs there, or the overrides ask
/// for.
Parallelism searched_parallelism(const workload::Cluster& cluster, const Overrides& overrides,
                                 const PolicyChoice& choice);

/// The input itself. Throws Error that names the flag or option which the profiled device, the workload or the policy
/// cannot honour.
const PlanningInput& checked(const PlanningInput& input, const PolicyChoice& choice);

}  // namespace braid::planner

#pragma once

#include <string>

#include "planner/search/planning_input.h"

namespace braid::planner {

/// The cheapest change that makes a workload fit memory that a policy has no plan for, as what there is to do: "lower
/// max_length to 960 where it is more, ...". It was laid out and fits, so that make_plan has a plan for it.
///
/// Cheapest is, in this order:
///  1. what leaves tasks and ranks as they are, of these the first that fits: an override less, another value of one
///     option, another policy (with one backbone where it might keep several, else by default), that without overrides;
///  2. what gives up the smallest share of a step's tokens (fewer_tokens.h), up to half of them;
///  3. the fewest more GPUs (larger_cluster.h); on CPUs none, for their ranks share one machine's memory;
///  4. as 2 or 3 without overrides, then by another policy, too;
///  5. as 2, whatever it gives up; then that as in 4.
/// Where nothing of all this fits, says so.
///
/// Counts the plans that it lays out, not seconds: no more than about kMostPlansLaidOut. What it says then fits all the
/// same, yet something cheaper may fit, too.
std::string cheapest_remedy(const PlanningInput& input, const PolicyChoice& choice);

inline constexpr std::int64_t kMostPlansLaidOut = 2000;

}  // namespace braid::planner

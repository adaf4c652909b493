#pragma once

#include <string>

#include "planner/search/planning_input.h"

namespace braid::planner {

/// Throws Error where adapters could not be byte-identical whatever runs beside them (Workload::reproducible): on
/// anything but processors, of adapters other than LoRA's, and where a global batch has more tokens than exact sums
/// take.
void check_reproducible(const PlanningInput& input);

/// What is promised of such a plan.
std::string how_reproducible(const Overrides& overrides);

}  // namespace braid::planner

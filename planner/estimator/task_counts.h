#pragma once

#include <span>
#include <vector>

#include "planner/search/planning_input.h"

namespace braid::planner {

/// So many tasks of each kind, as a workload.
struct CountedTasks {
  workload::Workload workload;
  workload::SampleIndex samples;
  std::vector<std::int32_t> kinds;  ///< per task
};

/// The kinds are the tasks of the input. Samples are drawn anew for each task of a kind, or a global batch of them all
/// has the kind's mean length.
CountedTasks counted_tasks(const PlanningInput& kinds, std::span<const std::int32_t> counts, bool drawn);

/// Sets of 2, 4, ... and as many tasks as there may be, of kinds from first to last: what is learned from them goes for
/// others.
std::vector<std::vector<std::int32_t>> telling_sets(std::size_t kinds, std::int32_t most_tasks);

}  // namespace braid::planner

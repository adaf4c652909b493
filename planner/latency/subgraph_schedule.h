#pragma once

#include <span>
#include <vector>

#include "planner/latency/launch_rule.h"
#include "planner/latency/subgraph.h"

namespace braid::planner {

struct LaunchEntry {
  SubgraphIndex subgraph = 0;
  std::int32_t htask = 0;
  Nanoseconds compute_start = 0;
  Nanoseconds compute_end = 0;
  Nanoseconds communication_start = 0;  ///< both are the end of computation where there is none
  Nanoseconds communication_end = 0;
  bool operator==(const LaunchEntry&) const = default;
};

struct LaunchSchedule {
  std::vector<LaunchEntry> entries;  ///< in the order of their launch
  Nanoseconds makespan = 0;
  Nanoseconds compute_busy = 0;
  Nanoseconds communication_busy = 0;
  Nanoseconds exposed_communication = 0;  ///< while nothing computes
};

/// The static order in which a stage launches the subgraphs of a bucket's hTasks (MuxTune §3.4.2, Algorithm 1): Kahn's
/// algorithm over all DAGs at once. A subgraph is put into the queue once its predecessors have been launched (the
/// paper's line 11 puts in all of its DAG that are ready, those in the queue again). `slowdown` matters to
/// earliest_start alone.
/// Throws InternalError when subgraphs wait for one another in a circle. Cost: O(n log n + edges) for n subgraphs.
std::vector<SubgraphIndex> launch_order(std::span<const Subgraph> subgraphs,
                                        LaunchRule rule = LaunchRule::earliest_start, double slowdown = 1);

/// The times of a launch order, one clock a stream where the paper's Algorithm 1 has one for both. Computation starts
/// when its stream is free and all of its predecessors have ended, communication included; communication when the
/// subgraph's computation has ended and its stream is free; both streams run in the order of launch. Computation takes
/// `slowdown` (at least 1: CostModel::overlap_slowdown) times as long while communication runs.
///
/// One stream is always busy until the end, so that whatever the order
///   makespan = compute_busy + exposed_communication <= sequential_time(subgraphs).
/// Throws InternalError for an order that launches a subgraph before one it waits for. Cost: linear.
LaunchSchedule launch(std::span<const Subgraph> subgraphs, std::span<const SubgraphIndex> order, double slowdown = 1);

/// launch() of launch_order().
LaunchSchedule schedule(std::span<const Subgraph> subgraphs, LaunchRule rule = LaunchRule::earliest_start,
                        double slowdown = 1);

/// One subgraph after another, communication never beside computation.
Nanoseconds sequential_time(std::span<const Subgraph> subgraphs);

}  // namespace braid::planner

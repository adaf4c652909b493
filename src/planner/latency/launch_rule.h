#pragma once

namespace braid::planner {

/// Which of the subgraphs that are ready is launched next. Ties: by hTask, then by index.
enum class LaunchRule {
  shallowest,      ///< MuxTune's Algorithm 1: the least depth, then the longest latency
  earliest_start,  ///< the one whose computation can start first, then as Algorithm 1
};

}  // namespace braid::planner

#pragma once

namespace braid::planner {

/// Which subgraph is launched next (MuxTune §3.4.2, Algorithm 1): of those that are ready the one of the least depth,
/// of these the longest. Ties: by hTask, then by index.
enum class LaunchRule {
  /// Ready: all that it waits for has ended when the compute stream is free; where none is, those that are soonest. So
  /// communication is overlapped whenever another hTask has work.
  earliest_start,
  /// Ready: all that it waits for has been launched, as Algorithm 1 is printed, whose one clock does not know when that
  /// ends. What is launched may then wait while others could compute.
  shallowest,
};

}  // namespace braid::planner

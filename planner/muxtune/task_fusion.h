#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace braid::planner {

/// What fusion must know of tasks that are sorted by tokens per microbatch, ascending. A run [first, last], both
/// inclusive, is an hTask.
struct FusionProblem {
  std::int32_t tasks = 0;
  std::int32_t stages = 1;
  std::int64_t microbatches = 1;  ///< C, of every hTask
  /// Forward and backward of one microbatch of the hTask on the stage (the paper's 2 L^(s)); finite, not negative.
  std::function<double(std::int32_t first, std::int32_t last, std::int32_t stage)> stage_seconds;
  /// Whether the hTask fits memory on every stage (Eq. 5); empty: everything fits.
  std::function<bool(std::int32_t first, std::int32_t last)> fits;
  /// Into how many microbatches each of the run's C is cut, so that C is as much larger in Eq. 4; empty: none is.
  std::function<double(std::int32_t first, std::int32_t last)> cut{};
};

/// What an hTask after the first adds to the latency, where L is Eq. 4: Σ over all stages but the last + C max, of
/// `stage_seconds`.
enum class FusionIncrement : std::uint8_t {
  one_pass,  ///< C max: its passes through the slowest stage in the steady phase, as the paper's text says
  literal    ///< L / S, as Eq. 6 is printed: about 1/S of that, though the stages overlap in L already
};

struct TaskRun {
  std::int32_t first = 0;
  std::int32_t last = 0;
  bool operator==(const TaskRun&) const = default;
};

struct FusedTasks {
  std::vector<TaskRun> htasks;  ///< ascending; together every task once
  double seconds = 0;           ///< F(M, N)
};

/// For every N in 1..M, ascending, the partition of the M tasks into N runs that has the least F(M, N) (MuxTune §3.3,
/// Eq. 4 and 6); an N for which no partition fits memory is left out, so the result is empty when no N is possible.
///
/// F counts the warm-up and drain of the first hTask only, as the paper does. The template launches hTasks in
/// descending order of latency, so that a pipeline warms up with the largest and drains with the smallest (Appendix A,
/// Lemma 1); F leaves out at most half of what the largest's Σ exceeds the first's by. F also adds each hTask's own
/// slowest stage: where these differ between hTasks, the pipeline is faster than F, which then favours fusing. So F
/// ranks candidates; replay judges them.
///
/// Of equally good partitions the one is returned whose last hTask begins first, then the one before it, and so on.
/// Calls `fits` once a run and `stage_seconds` once a stage of each run that fits. Cost: O(M² (S + M)).
std::vector<FusedTasks> fuse_tasks(const FusionProblem& problem, FusionIncrement increment = FusionIncrement::one_pass);

}  // namespace braid::planner

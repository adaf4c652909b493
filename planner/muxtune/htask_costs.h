#pragma once

#include <functional>
#include <span>
#include <vector>

#include "planner/latency/run_prices.h"

namespace braid::planner {

/// What every run of neighbouring tasks costs as one hTask on a stage: MuxTune's Eq. 3, of all pairs at once.
///
/// Products and all that depends on tokens alone are asked for by the run's tokens; adapters and attention are asked
/// for task by task and put together as costmodel::CostModel does (side by side: the sum of utilization times latency,
/// yet no less than the longest), so that a run costs O(1) after the one that is a task shorter. Says what
/// ClockLatency::alone says of the tasks' loads put together, save for attention, where a sequence length that several
/// tasks have counts once for each of them, and for tokens, which are rounded up (RunPrices::TokenPrices). Collectives are left out, as in Eq. 3: they are overlapped, or judged later.
class HTaskCosts {
 public:
  /// Tokens of a run's microbatch over the sum of its tasks' loads; 0: the run is not asked for.
  using Fullness = std::function<double(std::int32_t first, std::int32_t last)>;

  /// Runs that were not asked for cost 0.
  explicit HTaskCosts(std::int32_t tasks)
      : count_(tasks), seconds_{std::vector<double>(place(tasks, 0)), std::vector<double>(place(tasks, 0))} {}

  /// `loads`: one microbatch of each task, in the order of the runs; each of one task. Without a fullness it is 1 of
  /// every run. Of one first task the runs asked for end at neighbours.
  void ask(RunPrices& prices, const costmodel::StageShape& stage, std::span<const costmodel::MicrobatchLoad> loads,
           const Fullness& fullness = {});

  std::int32_t tasks() const { return count_; }
  /// Tasks first..last, both included.
  double forward_seconds(std::int32_t first, std::int32_t last) const { return seconds_[0][place(first, last)]; }
  double backward_seconds(std::int32_t first, std::int32_t last) const { return seconds_[1][place(first, last)]; }
  double seconds(std::int32_t first, std::int32_t last) const {
    return forward_seconds(first, last) + backward_seconds(first, last);
  }

 private:
  std::size_t place(std::int32_t first, std::int32_t last) const {
    return static_cast<std::size_t>(first) * static_cast<std::size_t>(count_) + static_cast<std::size_t>(last);
  }

  std::int32_t count_ = 0;
  std::vector<double> seconds_[2];  // per pass
};

}  // namespace braid::planner

#pragma once

#include "costmodel/profile/cost_model.h"
#include "planner/plan/plan.h"
#include "planner/program/timeline.h"
#include "planner/window/window.h"
#include "planner/window/window_slices.h"

namespace braid::planner {

/// Predicts a fixed plan; lays out what both answers need once. What it is made from must outlive it.
class Predictor {
 public:
  Predictor(const FixedPlan& plan, const WindowInput& input, Outlook outlook)
      : plan_(plan), input_(input), outlook_(outlook), slices_(plan, input, outlook) {}

  /// What each rank holds. Replays nothing.
  void memory(Prediction& prediction);
  /// After that: the most that each rank would hold in the windows that told its memory, were other layers recomputed.
  /// In others it may hold more then.
  std::vector<Bytes> peaks_with(const std::vector<ReplicaShape>& recomputing);
  /// All else, told by replaying the plan's windows; windows alike are replayed once. Of a stream the first steps are
  /// replayed, as a slice, and left out of all rates; first_step_seconds is that of a step by itself (0 at a glance).
  void rates(ClockLatency& latency, const Judge& judge, Prediction& prediction);

 private:
  const FixedPlan& plan_;
  const WindowInput input_;
  Outlook outlook_;
  WindowSlices slices_;
  std::vector<std::int64_t> telling_windows_;
  std::vector<Program> telling_;  // Programs around them, once they are asked for
};

/// What a fixed plan is predicted to do in mid-stream.
Prediction predict(const FixedPlan& plan, const WindowInput& input, ClockLatency& latency, const Judge& judge,
                   Outlook outlook = Outlook::full);

/// Sums that throughput is made of, over microbatches.
struct TokenCounts {
  std::int64_t computed = 0;
  std::int64_t billed = 0;
  std::int64_t data = 0;
};
TokenCounts count_tokens(std::span<const Microbatch> microbatches, const workload::Workload& workload);

}  // namespace braid::planner

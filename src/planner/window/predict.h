#pragma once

#include "costmodel/cost_model.h"
#include "planner/plan/plan.h"
#include "planner/program/timeline.h"
#include "planner/window/window.h"

namespace braid::planner {

/// How much of the stream a prediction looks at: to rank many plans, or to tell what one will do.
enum class Outlook {
  glance,  ///< one step of every task; memory of its largest microbatch; no FLOPs
  full     ///< kPredictedSteps of every task; memory of the windows that need the most of a whole run
};

/// What each rank holds, into `prediction`. Replays nothing.
void predict_memory(const FixedPlan& plan, const WindowInput& input, Outlook outlook, Prediction& prediction);

/// All else, told by replaying the plan's windows; windows alike are replayed once. Of a stream the first steps are
/// replayed, as a slice, and left out of all rates; first_step_seconds is that of a step by itself
/// (0 at a glance).
void predict_rates(const FixedPlan& plan, const WindowInput& input, ClockLatency& latency, const Judge& judge,
                   Outlook outlook, Prediction& prediction);

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

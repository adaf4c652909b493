#pragma once

#include "planner/plan/plan.h"

namespace braid::cli {

/// What a run takes until all of its tasks have ended, evaluations included.
struct CourseForecast {
  double seconds = 0;         ///< where each task takes all its steps
  double halved_seconds = 0;  ///< where searches end tasks at their rungs
  std::int64_t steps = 0;     ///< of all tasks
  std::int64_t halved_steps = 0;
};

/// Told by the rates of plans for the tasks that are left: a run is planned anew as searches end tasks. Which those are
/// nobody knows before: as many as rungs end are taken evenly from all trials. All tasks advance a step in the time
/// that the plan tells for that; an evaluation's token takes half of what a step's token takes, as it goes forward
/// alone.
CourseForecast forecast_course(const planner::Plan& plan, const workload::SampleIndex& samples);

/// Whether any of its tasks is in a search.
bool has_search(const workload::Workload& workload);

}  // namespace braid::cli

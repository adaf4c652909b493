#pragma once

#include <functional>
#include <set>
#include <vector>

#include "planner/plan/plan.h"

namespace braid::cli {

/// The samples of a task, and those that it is evaluated on.
struct TaskSizes {
  std::vector<workload::SampleSize> learned, held_out;
};

/// What a run that goes by a plan is planned anew from.
struct Replanned {
  const planner::Plan& now;
  const workload::Workload& whole;    ///< of which the plan's are the first tasks
  std::set<planner::TaskIndex> live;  ///< that run from then on
  std::vector<std::int64_t> taken;    ///< steps, by task of the whole
  std::function<TaskSizes(planner::TaskIndex)> sizes;
  std::function<void(double)> on_progress = {};
};

/// A plan for the live tasks and the steps that they have left, as the plan that runs was made: by its policy, its
/// options and what was asked of it, its profile, and on as many ranks. Throws Error where there is none.
planner::Plan replan(const Replanned& asked);

}  // namespace braid::cli

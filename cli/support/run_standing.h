#pragma once

#include <set>
#include <vector>

#include "exec/searches.h"

namespace braid::cli {

/// How far a run's tasks have come, each vector by task.
struct RunStanding {
  std::vector<std::int64_t> taken;  ///< steps
  exec::EndedTasks ended;           ///< before their last step
  std::set<planner::TaskIndex> paused;
  std::vector<std::vector<exec::Evaluated>> evaluations;

  bool has_ended(planner::TaskIndex task, const workload::SampleIndex& samples) const {
    return ended.contains(task) || taken[static_cast<std::size_t>(task)] >= samples.steps(task);
  }
  /// The tasks that are to train: they have steps left, are not paused, and have a place in their search. Where it has
  /// too few, those that are `training` keep theirs.
  std::set<planner::TaskIndex> live(const workload::Workload& workload, const workload::SampleIndex& samples,
                                    const std::set<planner::TaskIndex>& training) const;
};

}  // namespace braid::cli

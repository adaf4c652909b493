#include "cli/support/run_standing.h"

namespace braid::cli {

using planner::TaskIndex;

std::set<TaskIndex> RunStanding::live(const workload::Workload& workload, const workload::SampleIndex& samples,
                                      const std::set<TaskIndex>& training) const {
  std::set<TaskIndex> able;
  for (TaskIndex task = 0; task < static_cast<TaskIndex>(taken.size()); ++task)
    if (!has_ended(task, samples) && !paused.contains(task)) able.insert(task);
  return exec::Searches(workload, samples).placed(able, training, evaluations, ended);
}

}  // namespace braid::cli

#include "planner/estimator/searched_estimator.h"

#include <numeric>

#include "base/error.h"
#include "planner/search/plan_search.h"

namespace braid::planner {

SearchedEstimator::SearchedEstimator(const PlanningInput& input, const PolicyChoice& choice,
                                     std::shared_ptr<Layouts> layouts)
    : StepEstimator(std::move(layouts)), input_(input), choice_(choice) {
  const std::size_t kinds = input.workload.tasks.size();
  std::string why;
  bool any = false;
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    std::vector<std::int32_t> counts(kinds, 0);
    counts[kind] = 1;
    const CountedTasks task = counted_tasks(input_, counts, true);
    std::optional<Plan>& plan = alone_.emplace_back();
    try {
      plan = make_plan(input_.of(task.workload, task.samples), choice_);
      any = true;
    } catch (const Error& error) {
      why = error.what();
    }
  }
  if (!any) throw error("{}", why);
}

std::optional<StepEstimate> SearchedEstimator::estimate(std::span<const std::int32_t> counts) {
  if (std::accumulate(counts.begin(), counts.end(), 0) == 1) {
    return estimate_of(only(counts));
  }
  const CountedTasks tasks = counted_tasks(input_, counts, true);
  const PlanningInput input = input_.of(tasks.workload, tasks.samples);
  const std::optional<Candidate> found = PlanSearch(input, choice_).about_fastest();
  if (!found) return std::nullopt;
  return estimate_of(found->arrangement.fixed, found->prediction);
}

/// The estimate is a replay.
double SearchedEstimator::replayed(std::span<const std::int32_t> counts) {
  const std::optional<StepEstimate> known = estimate(counts);
  BRAID_CHECK(known, "a set is replayed that has no estimate");
  return known->step_seconds;
}

}  // namespace braid::planner

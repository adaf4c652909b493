#include "exec/evaluations.h"

#include <algorithm>
#include <cmath>

namespace braid::exec {

Evaluations::Evaluations(const workload::Workload& workload, const workload::SampleIndex& samples)
    : workload_(workload), samples_(samples), searches_(workload, samples), all_(workload.tasks.size()) {}

std::int64_t Evaluations::asked_until(planner::TaskIndex task, std::int64_t taken) const {
  const std::optional<workload::Evaluation>& evaluation = workload_.tasks[static_cast<std::size_t>(task)].evaluation;
  if (!evaluation || taken <= 0) return 0;
  if (taken >= samples_.steps(task)) return samples_.steps(task);
  const std::int64_t every = evaluation->every > 0 ? evaluation->every : samples_.batches_per_epoch(task);
  return std::max(taken / every * every, searches_.rung_until(task, taken));
}

bool Evaluations::asked_at(planner::TaskIndex task, std::int64_t step) const {
  return step > 0 && asked_until(task, step) == step;
}

bool Evaluations::due(planner::TaskIndex task, std::int64_t taken) const {
  return asked_until(task, taken) > (of(task).empty() ? 0 : of(task).back().step);
}

bool Evaluations::out_of_patience(planner::TaskIndex task) const {
  const std::optional<workload::Evaluation>& evaluation = workload_.tasks[static_cast<std::size_t>(task)].evaluation;
  if (!evaluation || evaluation->patience == 0) return false;
  const std::optional<Evaluated> best = this->best(task);
  const auto since =
      std::ranges::count_if(of(task), [&](const Evaluated& one) { return !best || one.step > best->step; });
  return since >= evaluation->patience;
}

}  // namespace braid::exec

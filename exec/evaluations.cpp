#include "exec/evaluations.h"

#include <algorithm>
#include <cmath>

namespace braid::exec {

Evaluations::Evaluations(const workload::Workload& workload, const workload::SampleIndex& samples)
    : workload_(workload), samples_(samples), all_(workload.tasks.size()) {}

std::int64_t Evaluations::asked_until(planner::TaskIndex task, std::int64_t taken) const {
  const std::optional<workload::Evaluation>& evaluation = workload_.tasks[static_cast<std::size_t>(task)].evaluation;
  if (!evaluation || taken <= 0) return 0;
  if (taken >= samples_.steps(task)) return samples_.steps(task);
  const std::int64_t every = evaluation->every > 0 ? evaluation->every : samples_.batches_per_epoch(task);
  return taken / every * every;
}

bool Evaluations::asked_at(planner::TaskIndex task, std::int64_t step) const {
  return step > 0 && asked_until(task, step) == step;
}

bool Evaluations::due(planner::TaskIndex task, std::int64_t taken) const {
  return asked_until(task, taken) > (of(task).empty() ? 0 : of(task).back().step);
}

std::optional<Evaluated> best_of(std::span<const Evaluated> evaluations) {
  std::optional<Evaluated> best;
  for (const Evaluated& one : evaluations)
    if (std::isfinite(one.loss) && (!best || one.loss < best->loss)) best = one;
  return best;
}

bool Evaluations::out_of_patience(planner::TaskIndex task) const {
  const std::optional<workload::Evaluation>& evaluation = workload_.tasks[static_cast<std::size_t>(task)].evaluation;
  if (!evaluation || evaluation->patience == 0) return false;
  const std::optional<Evaluated> best = this->best(task);
  const auto since = std::ranges::count_if(of(task), [&](const Evaluated& one) { return !best || one.step > best->step; });
  return since >= evaluation->patience;
}

}  // namespace braid::exec

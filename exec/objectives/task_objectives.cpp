#include "exec/objectives/task_objectives.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace braid::exec {

TaskObjectives::TaskObjectives(std::span<const workload::Task> tasks, const workload::SampleIndex& samples)
    : samples_(samples) {
  for (const workload::Task& task : tasks) {
    State& state = states_.emplace_back();
    state.objective = task.objective;
    if (!task.objective.pairs()) continue;
    state.references.resize(static_cast<std::size_t>(samples.samples(static_cast<int>(states_.size()) - 1)));
  }
}

void TaskObjectives::set_references(planner::TaskIndex task, References references) {
  State& state = states_[static_cast<std::size_t>(task)];
  BRAID_CHECK(references.size() >= state.references.size(), "references of {} pairs, of {}", references.size(),
              state.references.size());
  state.references = std::move(references);
}

/// 1 over the supervised tokens of the global batch, over its pairs where it has those. The step gate keeps a task's
/// batches apart.
double TaskObjectives::scale(planner::TaskIndex task, std::int64_t global_batch) const {
  const State& state = states_[static_cast<std::size_t>(task)];
  if (state.scaled == global_batch) return state.scale;
  std::int64_t terms = 0;
  for (const workload::SampleRef& sample : samples_.global_batch(task, global_batch))
    terms += state.objective.pairs() ? 1 : sample.supervised;
  state.scaled = global_batch;
  state.scale = 1.0 / static_cast<double>(std::max<std::int64_t>(terms, 1));
  return state.scale;
}

BatchLoss TaskObjectives::loss_of(planner::TaskIndex task, const References& sums,
                                  std::span<const workload::Sample> samples, std::size_t first) const {
  const State& state = states_[static_cast<std::size_t>(task)];
  BatchLoss all;
  std::int64_t terms = 0;
  for (std::size_t i = first; i < samples.size(); ++i) {
    terms += state.objective.pairs() ? 1 : supervised_count(samples[i]);
    if (!state.objective.pairs()) {
      all.loss += sums[i][0];
      continue;
    }
    const PairTerms terms_of_pair = pair_terms(state.objective, sums[i], state.references[i]);
    all.loss += terms_of_pair.loss;
    all.margin += terms_of_pair.margin;
    all.accuracy += terms_of_pair.margin > 0 ? 1 : 0;
  }
  const double scale = 1.0 / static_cast<double>(std::max<std::int64_t>(terms, 1));
  return {all.loss * scale, all.margin * scale, all.accuracy * scale};
}

double TaskObjectives::factor(const SampleRows& rows) const {
  return of(rows).objective.pairs() ? 1 : scale(rows.sample.task, rows.sample.global_batch);
}

void TaskObjectives::take(const SampleRows& rows, double weighted_loss) {
  State& state = of(rows);
  if (!state.objective.pairs()) {
    state.sum += weighted_loss * scale(rows.sample.task, rows.sample.global_batch);
    return;
  }
  Pair& pair = state.pairs[{rows.sample.global_batch, rows.sample.index}];
  pair.number = rows.number;
  pair.sums[static_cast<std::size_t>(rows.sample.sequence)] += weighted_loss;
}

PairTerms TaskObjectives::terms(const State& state, const Pair& pair) const {
  return pair_terms(state.objective, pair.sums, state.references[static_cast<std::size_t>(pair.number)]);
}

double TaskObjectives::late_factor(const SampleRows& rows) const {
  const State& state = of(rows);
  if (!state.objective.pairs()) return 1;
  const double slope = terms(state, state.pairs.at({rows.sample.global_batch, rows.sample.index})).slope;
  return scale(rows.sample.task, rows.sample.global_batch) * (rows.sample.sequence == 0 ? slope : -slope);
}

BatchLoss TaskObjectives::finish(planner::TaskIndex task, std::int64_t global_batch) {
  State& state = states_[static_cast<std::size_t>(task)];
  if (!state.objective.pairs()) return {std::exchange(state.sum, 0), 0, 0};
  const double scale = this->scale(task, global_batch);
  BatchLoss sums;
  const auto first = state.pairs.lower_bound({global_batch, 0}), last = state.pairs.lower_bound({global_batch + 1, 0});
  for (auto pair = first; pair != last; ++pair) {
    const PairTerms terms = this->terms(state, pair->second);
    sums.loss += terms.loss * scale;
    sums.margin += terms.margin * scale;
    sums.accuracy += terms.margin > 0 ? scale : 0;
  }
  state.pairs.erase(first, last);
  return sums;
}

}  // namespace braid::exec

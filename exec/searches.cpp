#include "exec/searches.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace braid::exec {

using planner::TaskIndex;

namespace {

constexpr double kWorst = std::numeric_limits<double>::infinity();

/// Nothing where it is not known yet.
std::optional<double> judged(const std::vector<Evaluated>& evaluations, Ended ended, std::int64_t rung) {
  for (const Evaluated& one : evaluations)
    if (one.step >= rung) return std::isfinite(one.loss) ? one.loss : kWorst;
  if (ended == Ended::no) return std::nullopt;
  const std::optional<Evaluated> best = best_of(evaluations);
  return ended == Ended::early && best ? best->loss : kWorst;
}

/// The steps after which trials of `rungs` rungs are judged.
std::vector<std::int64_t> rungs_of(std::int64_t steps, std::int64_t halving, std::int64_t rungs) {
  std::vector<std::int64_t> all;
  for (std::int64_t rung = 0; rung < rungs; ++rung) {
    steps = (steps + halving - 1) / halving;
    all.push_back(steps);
  }
  std::ranges::reverse(all);
  return all;
}

}  // namespace

std::vector<std::int64_t> Searches::survivors(std::int64_t trials, std::int64_t halving, std::int64_t keep) {
  std::vector<std::int64_t> all = {trials};
  while (all.back() > keep) all.push_back(std::max(keep, (all.back() + halving - 1) / halving));
  return all;
}

Searches::Searches(const workload::Workload& workload, const workload::SampleIndex& samples)
    : rungs_(workload.tasks.size()), survivors_(workload.tasks.size(), {1}) {
  for (TaskIndex task = 0; task < static_cast<TaskIndex>(rungs_.size()); ++task) {
    const std::optional<workload::Search>& search = workload.tasks[static_cast<std::size_t>(task)].search;
    if (search) searches_[search->name].trials.push_back(task);
  }
  for (auto& [name, search] : searches_) {
    const workload::Search& said = *workload.tasks[static_cast<std::size_t>(search.trials.front())].search;
    search.survivors = survivors(std::ssize(search.trials), said.halving, said.keep);
    search.at_once = said.at_once;
    for (const TaskIndex task : search.trials) {
      rungs_[static_cast<std::size_t>(task)] =
          rungs_of(samples.steps(task), said.halving, std::ssize(search.survivors) - 1);
      survivors_[static_cast<std::size_t>(task)] = search.survivors;
    }
  }
}

std::int64_t Searches::rung_until(TaskIndex task, std::int64_t taken) const {
  std::int64_t last = 0;
  for (const std::int64_t rung : rungs(task))
    if (rung <= taken) last = rung;
  return last;
}

Searches::Standing Searches::stand(const Search& search, std::span<const std::vector<Evaluated>> evaluations,
                                   const EndedTasks& ended) const {
  Standing standing{search.trials};
  for (std::size_t rung = 0; rung + 1 < search.survivors.size(); ++rung) {
    std::vector<std::pair<double, TaskIndex>> ranking;
    for (const TaskIndex task : standing.trials) {
      const auto how = ended.find(task);
      const std::optional<double> loss = judged(evaluations[static_cast<std::size_t>(task)],
                                                how == ended.end() ? Ended::no : how->second, rungs(task)[rung]);
      if (loss) ranking.emplace_back(*loss, task);
    }
    if (ranking.size() < standing.trials.size()) {
      for (const auto& [loss, task] : ranking) standing.judged.push_back(task);
      break;
    }
    std::ranges::sort(ranking);
    const auto stay = static_cast<std::size_t>(search.survivors[rung + 1]);
    standing.trials.clear();
    for (std::size_t place = 0; place < ranking.size(); ++place)
      (place < stay ? standing.trials : standing.outranked).push_back(ranking[place].second);
    std::ranges::sort(standing.trials);
  }
  return standing;
}

std::set<TaskIndex> Searches::outranked(std::span<const std::vector<Evaluated>> evaluations,
                                        const EndedTasks& ended) const {
  std::set<TaskIndex> outranked;
  for (const auto& [name, search] : searches_) {
    const Standing standing = stand(search, evaluations, ended);
    outranked.insert(standing.outranked.begin(), standing.outranked.end());
  }
  return outranked;
}

std::set<TaskIndex> Searches::held(std::span<const std::vector<Evaluated>> evaluations, const EndedTasks& ended) const {
  std::set<TaskIndex> held;
  for (const auto& [name, search] : searches_) {
    if (search.at_once == 0) continue;
    for (const TaskIndex task : stand(search, evaluations, ended).judged)
      if (!ended.contains(task)) held.insert(task);
  }
  return held;
}

std::set<TaskIndex> Searches::placed(const std::set<TaskIndex>& able, const std::set<TaskIndex>& training,
                                     std::span<const std::vector<Evaluated>> evaluations,
                                     const EndedTasks& ended) const {
  std::set<TaskIndex> placed = able;
  for (const auto& [name, search] : searches_) {
    if (search.at_once == 0) continue;
    const Standing standing = stand(search, evaluations, ended);
    std::vector<TaskIndex> next;  // that may train, in the order in which they have places
    for (const bool trains : {true, false}) {
      for (const TaskIndex task : standing.trials) {
        if (able.contains(task) && training.contains(task) == trains && !std::ranges::count(standing.judged, task))
          next.push_back(task);
      }
    }
    for (const TaskIndex task : search.trials) placed.erase(task);
    placed.insert(next.begin(), next.begin() + std::min(std::ssize(next), static_cast<std::ptrdiff_t>(search.at_once)));
  }
  return placed;
}

}  // namespace braid::exec

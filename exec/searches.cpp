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
    : rungs_(workload.tasks.size()) {
  for (TaskIndex task = 0; task < static_cast<TaskIndex>(rungs_.size()); ++task) {
    const std::optional<workload::Search>& search = workload.tasks[static_cast<std::size_t>(task)].search;
    if (search) searches_[search->name].trials.push_back(task);
  }
  for (auto& [name, search] : searches_) {
    const workload::Search& said = *workload.tasks[static_cast<std::size_t>(search.trials.front())].search;
    search.survivors = survivors(std::ssize(search.trials), said.halving, said.keep);
    for (const TaskIndex task : search.trials)
      rungs_[static_cast<std::size_t>(task)] =
          rungs_of(samples.steps(task), said.halving, std::ssize(search.survivors) - 1);
  }
}

std::int64_t Searches::rung_until(TaskIndex task, std::int64_t taken) const {
  std::int64_t last = 0;
  for (const std::int64_t rung : rungs(task))
    if (rung <= taken) last = rung;
  return last;
}

std::set<TaskIndex> Searches::outranked(std::span<const std::vector<Evaluated>> evaluations,
                                        const EndedTasks& ended) const {
  std::set<TaskIndex> outranked;
  for (const auto& [name, search] : searches_) {
    std::vector<TaskIndex> trials = search.trials;
    for (std::size_t rung = 0; rung + 1 < search.survivors.size(); ++rung) {
      std::vector<std::pair<double, TaskIndex>> ranking;
      for (const TaskIndex task : trials) {
        const auto how = ended.find(task);
        const std::optional<double> loss = judged(evaluations[static_cast<std::size_t>(task)],
                                                  how == ended.end() ? Ended::no : how->second, rungs(task)[rung]);
        if (loss) ranking.emplace_back(*loss, task);
      }
      if (ranking.size() < trials.size()) break;
      std::ranges::sort(ranking);
      const auto stay = static_cast<std::size_t>(search.survivors[rung + 1]);
      trials.clear();
      for (std::size_t place = 0; place < ranking.size(); ++place)
        place < stay ? trials.push_back(ranking[place].second) : (void)outranked.insert(ranking[place].second);
    }
  }
  return outranked;
}

}  // namespace braid::exec

#pragma once

#include <optional>
#include <vector>

#include "exec/searches.h"

namespace braid::exec {

/// When a run's tasks are evaluated, and what their evaluations say of them. All of it follows from the losses alone,
/// so that a run that goes on decides as one that never stopped.
class Evaluations {
 public:
  Evaluations(const workload::Workload& workload, const workload::SampleIndex& samples);

  /// Whether a task that has taken so many steps is to be evaluated: after every so many, at the rungs of its search,
  /// and after its last.
  bool due(planner::TaskIndex task, std::int64_t taken) const;

  /// Whether its evaluations are after that step among others.
  bool asked_at(planner::TaskIndex task, std::int64_t step) const;

  void add(planner::TaskIndex task, const Evaluated& evaluated) { at(task).push_back(evaluated); }
  const std::vector<Evaluated>& of(planner::TaskIndex task) const { return all_[static_cast<std::size_t>(task)]; }
  /// Of a run before.
  void set(planner::TaskIndex task, std::vector<Evaluated> before) { at(task) = std::move(before); }

  const std::vector<std::vector<Evaluated>>& all() const { return all_; }

  std::optional<Evaluated> best(planner::TaskIndex task) const { return best_of(of(task)); }
  /// Whether as many as its patience came after the best.
  bool out_of_patience(planner::TaskIndex task) const;
  /// The trials of searches that others have outranked.
  std::set<planner::TaskIndex> outranked(const EndedTasks& ended) const { return searches_.outranked(all_, ended); }
  /// Those that wait at a rung for others.
  std::set<planner::TaskIndex> held(const EndedTasks& ended) const { return searches_.held(all_, ended); }

 private:
  /// The last of those steps that is not after `taken`; 0: none.
  std::int64_t asked_until(planner::TaskIndex task, std::int64_t taken) const;
  std::vector<Evaluated>& at(planner::TaskIndex task) { return all_[static_cast<std::size_t>(task)]; }

  const workload::Workload& workload_;
  const workload::SampleIndex& samples_;
  Searches searches_;
  std::vector<std::vector<Evaluated>> all_;  // by task, in their order
};

}  // namespace braid::exec

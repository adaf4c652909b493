#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "exec/ended.h"
#include "workload/sample_index.h"

namespace braid::exec {

/// The searches of a workload by successive halving (Jamieson and Talwalkar 2016, Algorithm 1). The tasks of one search
/// are its trials. Of n trials a rung lets the best 1 / halving go on, but not fewer than `keep`; there are as many
/// rungs as it takes to come from all trials to `keep`, the last at 1 / halving of a trial's steps, each before it at
/// 1 / halving of the next. So at each rung about as many steps have been spent as at any other.
///
/// A trial is judged by its first evaluation at the rung or after it; one that ended early before, by its best. One
/// that diverged or was cancelled before has none, and is the worst. Equals are told apart by their order in the
/// workload.
///
/// Where a search trains `at_once` of its trials, one that has been judged at a rung waits there for the others, and
/// its place goes to the next in the order of the workload.
class Searches {
 public:
  Searches(const workload::Workload& workload, const workload::SampleIndex& samples);

  /// Steps after which the task is judged, ascending; none of a task that is in no search.
  std::span<const std::int64_t> rungs(planner::TaskIndex task) const { return rungs_[static_cast<std::size_t>(task)]; }
  /// How many of its search's trials go on before each of its rungs and after the last; of a task in no search: 1.
  const std::vector<std::int64_t>& survivors(planner::TaskIndex task) const {
    return survivors_[static_cast<std::size_t>(task)];
  }
  /// The last of its rungs that is not after `taken`; 0: none.
  std::int64_t rung_until(planner::TaskIndex task, std::int64_t taken) const;

  /// The trials that a rung lets go no further, of those rungs at which all trials have been judged. `evaluations`: by
  /// task, in order.
  std::set<planner::TaskIndex> outranked(std::span<const std::vector<Evaluated>> evaluations,
                                         const EndedTasks& ended) const;

  /// The trials that have been judged at their rung where others have not been: they wait for them.
  std::set<planner::TaskIndex> held(std::span<const std::vector<Evaluated>> evaluations, const EndedTasks& ended) const;
  /// Of the tasks that are `able` to take a step those that have a place: all but of searches that train a few at
  /// once. There those that are `training` keep theirs.
  std::set<planner::TaskIndex> placed(const std::set<planner::TaskIndex>& able,
                                      const std::set<planner::TaskIndex>& training,
                                      std::span<const std::vector<Evaluated>> evaluations,
                                      const EndedTasks& ended) const;

  /// How many trials go on after each rung, the first before any: 12, 4, 2.
  static std::vector<std::int64_t> survivors(std::int64_t trials, std::int64_t halving, std::int64_t keep);

 private:
  struct Search {
    std::vector<planner::TaskIndex> trials;
    std::vector<std::int64_t> survivors;
    std::int64_t at_once = 0;
  };
  /// Where a search stands.
  struct Standing {
    std::vector<planner::TaskIndex> trials;       // that no rung has ended
    std::vector<planner::TaskIndex> judged = {};  // of them, at the next rung
    std::vector<planner::TaskIndex> outranked = {};
  };
  Standing stand(const Search& search, std::span<const std::vector<Evaluated>> evaluations,
                 const EndedTasks& ended) const;

  std::map<std::string, Search> searches_;                    // by name
  std::vector<std::vector<std::int64_t>> rungs_, survivors_;  // by task
};

}  // namespace braid::exec

#pragma once

#include <set>
#include <vector>

#include "sim/cluster/instances/task_sets.h"

namespace braid::sim {

/// Which instance a job joins.
enum class Joining : std::uint8_t {
  fastest,    ///< where its own steps will be shortest: an empty one first, then the least crowded
  throughput  ///< where the instance's tokens a second rise the most (MuxTune §6 leaves it to future work)
};

/// Instances by the set of tasks that they run, so that a job is offered one of each set and not every instance.
///
/// Sets are ranked for a kind of job when one of that kind asks, and keep their rank: they never change.
class InstanceChoice {
 public:
  InstanceChoice(TaskSets& sets, Joining joining);

  void add(std::int32_t instance, SetIndex set);
  void remove(std::int32_t instance, SetIndex set);

  static constexpr std::int32_t kNobody = -1;
  /// The best of those that can take a job of this kind, kNobody when none can; of like ones the last that came. With
  /// `may_start`, an instance of so many GPUs that is not there yet is one more, said as kNew.
  static constexpr std::int32_t kNew = -2;
  std::int32_t best(KindIndex kind, std::int64_t gpus, bool may_start);

 private:
  enum class Rank : std::uint8_t { absent, pending, ranked, refused };
  struct OfKind {
    std::vector<Rank> rank;  // per set
    std::vector<SetIndex> pending;
    std::set<std::pair<double, SetIndex>> ranked;  // the best first; those no longer there among them
  };

  bool is_there(SetIndex set) const {
    const auto place = static_cast<std::size_t>(set);
    return place < instances_.size() && !instances_[place].empty();
  }
  /// Less is better.
  double score(SetIndex set, SetIndex joined) const;

  TaskSets& sets_;
  Joining joining_;
  using Arrival = std::pair<std::int64_t, std::int32_t>;  // number of arrivals before, instance

  std::int32_t latest(SetIndex set) const { return instances_[static_cast<std::size_t>(set)].rbegin()->second; }

  std::vector<std::set<Arrival>> instances_;  // per set
  std::vector<std::int64_t> arrivals_;        // per instance, of its set
  std::int64_t arrived_ = 0;
  std::vector<OfKind> kinds_;
};

}  // namespace braid::sim

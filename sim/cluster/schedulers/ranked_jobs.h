#pragma once

#include <compare>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "sim/cluster/scheduler.h"

namespace braid::sim {

/// Where a job stands: the least goes first.
struct Rank {
  double key = 0, tie = 0;
  JobIndex job = 0;
  auto operator<=>(const Rank&) const = default;
};

/// Waiting jobs of a scheduler by rank. Whether a job fits depends on its GPUs and kind alone, so that only the first
/// of each needs to be looked at.
class RankedJobs {
 public:
  bool empty() const { return count_ == 0; }
  void add(const Cluster& cluster, const Rank& rank);
  /// Of the job that goes first; there must be one.
  const Rank& first() const;

  /// Ranks all anew. O(waiting).
  void rank_anew(const std::function<Rank(JobIndex)>& rank_of);

  /// Starts whoever fits beside those that run, the first ranks first. Says who started.
  std::vector<JobIndex> start_fitting(Cluster& cluster);

  /// Waiting and running jobs ranked together, the first that GPUs are enough for run; who does not fit lets others
  /// pass. Others must stop, the last ranks first, until those fit. Nobody that is stopped starts again in the same
  /// decision. GPUs may be enough and yet not fit, where gangs are of several sizes and bound to nodes, or where tasks
  /// of unlike kinds share: such a job waits. Says who started.
  /// Cost: O(log waiting) where whoever waits fits, else O(running + k log k) for k running that rank behind the first
  /// who waits.
  std::vector<JobIndex> run_first(Cluster& cluster, const std::function<Rank(JobIndex)>& rank_of);

 private:
  using Like = std::pair<std::int32_t, KindIndex>;  // GPUs, kind
  using Heap = std::vector<Rank>;                   // the first on top

  /// The heap with the first of those that `may` hold it; null when there is none.
  template <typename May>
  std::pair<const Like, Heap>* first_where(const May& may);
  Rank pop(Heap& heap);

  std::map<Like, Heap> waiting_;
  std::size_t count_ = 0;
};

/// Asks a cluster for decisions, one at a time: an earlier one takes the place of a later.
class Alarm {
 public:
  void set(Cluster& cluster, double seconds) {
    if (at_ > cluster.now() && at_ <= seconds) return;
    cluster.wake_at(seconds);
    at_ = seconds;
  }

 private:
  double at_ = -1;
};

}  // namespace braid::sim

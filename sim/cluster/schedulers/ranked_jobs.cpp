#include "sim/cluster/schedulers/ranked_jobs.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "sim/cluster/moments.h"

namespace braid::sim {
namespace {

/// What is left of a cluster while jobs are given GPUs on paper; those that share an instance a part of its GPUs each.
class Room {
 public:
  explicit Room(const Cluster& cluster) : cluster_(cluster), gpus_(static_cast<double>(cluster.gpus())) {}

  /// Where a job of some size finds no place, none that is larger does.
  bool is_refused(JobIndex job) const { return size(job) >= least_refused_; }
  bool take(JobIndex job) {
    if (is_refused(job)) return false;
    const std::int32_t gang = cluster_.jobs()[static_cast<std::size_t>(job)].gpus;
    const double part = cluster_.part_of_instance(job);
    const auto left = gangs_.try_emplace(gang, static_cast<double>(cluster_.room_for(gang))).first;
    if (size(job) > gpus_ + kRounding || part > left->second + kRounding) {
      least_refused_ = size(job);
      return false;
    }
    gpus_ -= size(job);
    left->second -= part;
    return true;
  }

 private:
  double size(JobIndex job) const {
    return cluster_.jobs()[static_cast<std::size_t>(job)].gpus * cluster_.part_of_instance(job);
  }

  const Cluster& cluster_;
  double gpus_;
  std::map<std::int32_t, double> gangs_;
  double least_refused_ = std::numeric_limits<double>::infinity();
};

const ClusterJob& job_of(const Cluster& cluster, const Rank& rank) {
  return cluster.jobs()[static_cast<std::size_t>(rank.job)];
}

}  // namespace

void RankedJobs::add(const Cluster& cluster, const Rank& rank) {
  const ClusterJob& job = job_of(cluster, rank);
  Heap& heap = waiting_[{job.gpus, job.kind}];
  heap.push_back(rank);
  std::push_heap(heap.begin(), heap.end(), std::greater<>());
  ++count_;
}

template <typename May>
std::pair<const RankedJobs::Like, RankedJobs::Heap>* RankedJobs::first_where(const May& may) {
  std::pair<const Like, Heap>* first = nullptr;
  for (auto& each : waiting_) {
    const Heap& heap = each.second;
    if (heap.empty() || (first && first->second.front() < heap.front()) || !may(each.first, heap.front())) continue;
    first = &each;
  }
  return first;
}

Rank RankedJobs::pop(Heap& heap) {
  std::pop_heap(heap.begin(), heap.end(), std::greater<>());
  const Rank rank = heap.back();
  heap.pop_back();
  --count_;
  return rank;
}

const Rank& RankedJobs::first() const {
  const Rank* first = nullptr;
  for (const auto& [like, heap] : waiting_) {
    if (!heap.empty() && (!first || heap.front() < *first)) first = &heap.front();
  }
  BRAID_CHECK(first, "nobody waits");
  return *first;
}

void RankedJobs::rank_anew(const std::function<Rank(JobIndex)>& rank_of) {
  for (auto& [like, heap] : waiting_) {
    for (Rank& rank : heap) rank = rank_of(rank.job);
    std::make_heap(heap.begin(), heap.end(), std::greater<>());
  }
}

std::vector<JobIndex> RankedJobs::start_fitting(Cluster& cluster) {
  std::vector<JobIndex> started;
  while (auto* first = first_where([&](const Like&, const Rank& rank) { return cluster.fits(rank.job); })) {
    started.push_back(pop(first->second).job);
    cluster.start(started.back());
  }
  return started;
}

std::vector<JobIndex> RankedJobs::run_first(Cluster& cluster, const std::function<Rank(JobIndex)>& rank_of) {
  std::vector<JobIndex> started;
  const auto anybody = [](const Like&, const Rank&) { return true; };
  for (auto* first = first_where(anybody); first; first = first_where(anybody)) {
    if (!cluster.fits(first->second.front().job)) break;
    started.push_back(pop(first->second).job);
    cluster.start(started.back());
  }
  if (empty()) return started;

  // Whoever runs and ranks before all who wait goes on.
  const Rank first_waiting = first();
  Room room(cluster);
  std::vector<Rank> running, chosen, others;
  for (const JobIndex job : cluster.running()) {
    const Rank rank = rank_of(job);
    if (rank < first_waiting) {
      room.take(job);
    } else {
      running.push_back(rank);
    }
  }
  std::sort(running.begin(), running.end());
  auto next = running.begin();
  while (true) {
    auto* first = first_where([&](const Like&, const Rank& rank) { return !room.is_refused(rank.job); });
    if (next != running.end() && (!first || *next < first->second.front())) {
      if (!room.take(next->job)) others.push_back(*next);
      ++next;
    } else if (!first) {
      break;
    } else if (room.take(first->second.front().job)) {
      chosen.push_back(pop(first->second));
    }
  }

  std::vector<Rank> held_back;
  for (const Rank& rank : chosen) {
    while (!cluster.fits(rank.job) && !others.empty()) {
      cluster.preempt(others.back().job);
      held_back.push_back(others.back());
      others.pop_back();
    }
    if (cluster.fits(rank.job)) {
      cluster.start(rank.job);
      started.push_back(rank.job);
    } else {
      held_back.push_back(rank);
    }
  }
  for (const JobIndex job : start_fitting(cluster)) started.push_back(job);
  for (const Rank& rank : held_back) add(cluster, rank);
  return started;
}

}  // namespace braid::sim

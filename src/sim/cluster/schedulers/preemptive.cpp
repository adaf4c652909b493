#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "sim/cluster/schedulers.h"

namespace braid::sim {
namespace {

/// The jobs with the least keys run, as many as fit, whoever must stop for it; ties by row. Keys of waiting jobs stay
/// as they are, those of running ones never rise: whoever runs is overtaken by submissions alone.
class Preemptive final : public Scheduler {
 public:
  /// Of a job with so many seconds of service left.
  using Key = std::function<double(const ClusterJob&, double remaining_seconds)>;

  Preemptive(std::string_view name, Key key) : name_(name), key_(std::move(key)) {}

  std::string_view name() const override { return name_; }
  void submitted(const Cluster& cluster, JobIndex job) override { wait(cluster, ranked(cluster, job)); }

  void decide(Cluster& cluster) override {
    refused_.clear();
    while (true) {
      const Like* likeness = nullptr;
      Queue* first = nullptr;
      for (auto& [like, queue] : queues_) {
        if (queue.empty() || (first && !(*queue.begin() < *first->begin())) || is_refused(like)) continue;
        first = &queue, likeness = &like;
      }
      if (!first) return;
      const Ranked job = *first->begin();
      if (cluster.fits(job.second) || make_room(cluster, job, likeness->first)) {
        cluster.start(job.second);
        first->erase(job);
      } else {
        refused_.push_back(*likeness);
      }
    }
  }

 private:
  using Ranked = std::pair<double, JobIndex>;
  using Queue = std::set<Ranked>;
  using Like = std::pair<std::int64_t, KindIndex>;  // GPUs, kind

  void wait(const Cluster& cluster, const Ranked& job) {
    const ClusterJob& waiting = cluster.jobs()[static_cast<std::size_t>(job.second)];
    queues_[{waiting.gpus, waiting.kind}].insert(job);
  }

  /// Where a job cannot run, none that ranks behind it can that is larger, or as large and of its kind.
  bool is_refused(const Like& like) const {
    return std::any_of(refused_.begin(), refused_.end(),
                       [&](const Like& refused) { return like.first > refused.first || like == refused; });
  }

  Ranked ranked(const Cluster& cluster, JobIndex job) const {
    return {key_(cluster.jobs()[static_cast<std::size_t>(job)], cluster.remaining_seconds(job)), job};
  }

  /// Stops those that rank behind, the last first, until the job fits. Stops nobody where that is not enough.
  bool make_room(Cluster& cluster, const Ranked& job, std::int64_t gpus) {
    std::vector<Ranked> behind;
    std::int64_t room = cluster.free_gpus();
    for (const JobIndex other : cluster.running()) {
      const Ranked rank = ranked(cluster, other);
      if (rank < job) continue;
      behind.push_back(rank);
      room += cluster.jobs()[static_cast<std::size_t>(other)].gpus;
    }
    if (room < gpus) return false;
    std::sort(behind.begin(), behind.end(), std::greater<>());
    std::vector<Ranked> stopped;
    for (const Ranked& victim : behind) {
      if (cluster.fits(job.second)) break;
      cluster.preempt(victim.second);
      stopped.push_back(victim);
    }
    const bool fits = cluster.fits(job.second);
    for (const Ranked& victim : stopped) {
      if (fits) {
        wait(cluster, victim);
      } else {
        cluster.start(victim.second);
      }
    }
    return fits;
  }

  std::string_view name_;
  Key key_;
  std::map<Like, Queue> queues_;
  std::vector<Like> refused_;  // in the decision under way
};

}  // namespace

std::unique_ptr<Scheduler> make_srtf(const std::vector<ClusterJob>& /*jobs*/) {
  return std::make_unique<Preemptive>("srtf", [](const ClusterJob&, double remaining) { return remaining; });
}

std::unique_ptr<Scheduler> make_srsf(const std::vector<ClusterJob>& /*jobs*/) {
  return std::make_unique<Preemptive>("srsf",
                                      [](const ClusterJob& job, double remaining) { return remaining * job.gpus; });
}

std::unique_ptr<Scheduler> make_priority(const std::vector<ClusterJob>& /*jobs*/) {
  return std::make_unique<Preemptive>("priority", [](const ClusterJob& job, double) { return -job.priority; });
}

std::unique_ptr<Scheduler> make_edf(const std::vector<ClusterJob>& /*jobs*/) {
  return std::make_unique<Preemptive>("edf", [](const ClusterJob& job, double) { return job.deadline_seconds; });
}

}  // namespace braid::sim

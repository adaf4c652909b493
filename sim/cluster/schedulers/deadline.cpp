#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"
#include "sim/cluster/moments.h"
#include "sim/cluster/schedulers.h"
#include "sim/cluster/schedulers/ranked_jobs.h"

namespace braid::sim {
namespace {

/// What an admitted job still must have, and until when.
struct Due {
  double due_seconds = 0, remaining_seconds = 0;
  std::int32_t gpus = 0;
};

/// Whether all are met if at every moment the first run, as many as GPUs are enough for.
/// Cost: at every end O(jobs that are looked at until no GPU is free), until the last that waits has started.
bool all_met(double now, std::int64_t gpus, std::vector<Due> jobs) {
  const auto ends_late = [&](const Due& job) {
    const double end = now + job.remaining_seconds;
    return end > job.due_seconds + kRounding * std::abs(end);
  };
  std::size_t left = jobs.size(), first = 0;  // not done; of those
  std::vector<Due*> running;
  while (left > 0) {
    while (jobs[first].remaining_seconds <= 0) ++first;
    std::int64_t free = gpus;
    double step = std::numeric_limits<double>::infinity();
    running.clear();
    for (std::size_t i = first; i < jobs.size() && free > 0; ++i) {
      if (jobs[i].remaining_seconds <= 0 || jobs[i].gpus > free) continue;
      free -= jobs[i].gpus;
      running.push_back(&jobs[i]);
      step = std::min(step, jobs[i].remaining_seconds);
    }
    BRAID_CHECK(!running.empty(), "a job of {} GPUs was let in to {}", jobs[first].gpus, gpus);
    if (running.size() == left)
      return std::none_of(running.begin(), running.end(), [&](const Due* job) { return ends_late(*job); });
    for (Due* job : running) {
      if (ends_late(*job)) return false;
      const bool ends = job->remaining_seconds <= step;
      job->remaining_seconds -= ends ? job->remaining_seconds : step;
      left -= ends;
    }
    now += step;
  }
  return true;
}

/// Earliest deadline first with admission control (ElasticFlow, ASPLOS'23, for jobs whose GPUs are fixed): a job is
/// admitted when it is submitted, if its deadline and those of all that were admitted before can be met by running
/// the earliest first. The others, and those without a deadline, take the GPUs that are left, in the order of
/// submission. Preemptive. As long as jobs run at the pace that they have alone, nothing is loaded and no GPU fails,
/// every admitted job meets its deadline; else those that can no longer meet theirs keep their place and are left out
/// of the account. Cost: a submission with a deadline plays through all admitted jobs; see all_met.
class Deadline final : public Scheduler {
 public:
  explicit Deadline(const std::vector<ClusterJob>& jobs) : is_admitted_(jobs.size(), false) {
    const auto other_size = [&](const ClusterJob& job) { return job.gpus != jobs.front().gpus; };
    if (!jobs.empty() && std::none_of(jobs.begin(), jobs.end(), other_size)) only_size_ = jobs.front().gpus;
  }

  std::string_view name() const override { return "deadline"; }
  void submitted(const Cluster& cluster, JobIndex job) override {
    is_admitted_[index(job)] = admit(cluster, job);
    waiting_.add(cluster, rank(cluster, job));
  }
  void ended(const Cluster& cluster, JobIndex job) override {
    admitted_.erase({cluster.jobs()[index(job)].deadline_seconds, job});
  }
  /// It keeps its place.
  void interrupted(const Cluster& cluster, JobIndex job) override { waiting_.add(cluster, rank(cluster, job)); }
  void decide(Cluster& cluster) override {
    if (!waiting_.empty()) waiting_.run_first(cluster, [&](JobIndex job) { return rank(cluster, job); });
  }

 private:
  static std::size_t index(JobIndex job) { return static_cast<std::size_t>(job); }

  bool admit(const Cluster& cluster, JobIndex job) {
    const double deadline = cluster.jobs()[index(job)].deadline_seconds;
    if (std::isinf(deadline) || cluster.now() + cluster.remaining_seconds(job) > deadline) return false;
    if (cluster.room_for(cluster.jobs()[index(job)].gpus) == 0) return false;
    const auto place = admitted_.emplace(deadline, job).first;
    std::vector<Due> jobs;
    for (const auto& [due, other] : admitted_) {
      const double remaining = cluster.remaining_seconds(other);
      const bool is_late = cluster.now() + remaining > due + kRounding * std::abs(due);
      jobs.push_back({is_late ? kNever : due, remaining, cluster.jobs()[index(other)].gpus});
    }
    // Where nodes have GPUs left over that are too few for a job, those do not count.
    const std::int64_t gpus = only_size_ > 0 ? cluster.room_for(only_size_) * only_size_ : cluster.gpus();
    // What needs nothing more is done, and where GPUs are out of service some jobs must wait for those.
    std::erase_if(jobs, [&](const Due& each) { return each.remaining_seconds <= 0 || each.gpus > gpus; });
    if (all_met(cluster.now(), gpus, std::move(jobs))) return true;
    admitted_.erase(place);
    return false;
  }

  Rank rank(const Cluster& cluster, JobIndex job) const {
    return {is_admitted_[index(job)] ? cluster.jobs()[index(job)].deadline_seconds : kNever, 0, job};
  }

  std::int32_t only_size_ = 0;  // 0: jobs ask for several numbers of GPUs
  std::vector<bool> is_admitted_;
  std::set<std::pair<double, JobIndex>> admitted_;  // those that have not ended, by deadline
  RankedJobs waiting_;
};

}  // namespace

std::unique_ptr<Scheduler> make_deadline(const std::vector<ClusterJob>& jobs) {
  return std::make_unique<Deadline>(jobs);
}

}  // namespace braid::sim

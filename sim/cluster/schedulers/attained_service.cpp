#include <algorithm>

#include "base/units.h"
#include "sim/cluster/moments.h"
#include "sim/cluster/schedulers.h"
#include "sim/cluster/schedulers/gittins_index.h"
#include "sim/cluster/schedulers/ranked_jobs.h"

namespace braid::sim {
namespace {

/// Looks at a job's attained service are at least so far apart: tasks that share may be slower than alone.
constexpr double kShortestSeconds = 1e-3;

/// From some service x GPUs on, in GPU-seconds, a job has a key.
struct Level {
  double from = 0, key = 0;
};

/// Jobs whose attained service x GPUs has the least key run, as many as fit, whoever must stop for it. Within one key
/// the first started goes first, then those that never ran, in the order of submission. Nobody is promoted.
/// Cost: O(running) an event while somebody waits, and that of RankedJobs::run_first.
class AttainedService final : public Scheduler {
 public:
  /// `levels`: ascending, from 0 on.
  AttainedService(std::string_view name, std::vector<Level> levels, std::size_t jobs)
      : name_(name), levels_(std::move(levels)), seen_(jobs) {}

  std::string_view name() const override { return name_; }
  void submitted(const Cluster& cluster, JobIndex job) override {
    look_at(cluster, job, false);
    waiting_.add(cluster, rank(job));
  }

  void decide(Cluster& cluster) override {
    if (waiting_.empty()) return;
    for (const JobIndex job : cluster.running()) {
      if (seen(job).next_look <= cluster.now()) look_at(cluster, job, true);
    }
    for (const JobIndex job : waiting_.run_first(cluster, [&](JobIndex each) { return rank(each); })) {
      seen(job).first_start = std::min(seen(job).first_start, cluster.now());
      look_at(cluster, job, true);
    }
    if (waiting_.empty()) return;
    double next = kNever;
    for (const JobIndex job : cluster.running()) next = std::min(next, seen(job).next_look);
    if (next != kNever) alarm_.set(cluster, next);
  }

 private:
  struct Seen {
    double key = 0;
    double next_look = kNever;  // before which it does not get to the next level, if it runs all the time
    double first_start = kNever;
  };

  Seen& seen(JobIndex job) { return seen_[static_cast<std::size_t>(job)]; }
  Rank rank(JobIndex job) const {
    const Seen& its = seen_[static_cast<std::size_t>(job)];
    return {its.key, its.first_start, job};
  }

  void look_at(const Cluster& cluster, JobIndex job, bool runs) {
    const double attained = cluster.attained_seconds(job);
    const std::int32_t gpus = cluster.jobs()[static_cast<std::size_t>(job)].gpus;
    const auto next = std::upper_bound(levels_.begin() + 1, levels_.end(), attained * gpus * (1 + kRounding),
                                       [](double service, const Level& level) { return service < level.from; });
    Seen& its = seen(job);
    its.key = std::prev(next)->key;
    its.next_look = kNever;
    if (next == levels_.end()) return;
    const double missing = next->from / gpus - attained, remaining = cluster.remaining_seconds(job);
    // Else it ends before.
    if (missing >= remaining) return;
    // Among others it is slower, for as long as they are there: half of that way is gone at a time.
    const double here = runs ? missing * ((cluster.finish_seconds(job) - cluster.now()) / remaining) : missing;
    its.next_look = cluster.now() + std::max({missing, here / 2, kShortestSeconds});
  }

  std::string_view name_;
  std::vector<Level> levels_;
  std::vector<Seen> seen_;  // per job
  RankedJobs waiting_;
  Alarm alarm_;
};

}  // namespace

/// Discretized two-dimensional LAS of two queues.
std::unique_ptr<Scheduler> make_las(const std::vector<ClusterJob>& jobs) {
  return std::make_unique<AttainedService>("las", std::vector<Level>{{0, 0}, {kHour, 1}}, jobs.size());
}

/// Two-dimensional Gittins index. The quantum of service grows with what is attained, so that a job is ranked anew a
/// few times only: the index is taken at 0, at a tenth of a GPU-hour and each time that this has doubled.
std::unique_ptr<Scheduler> make_gittins(const std::vector<ClusterJob>& jobs) {
  std::vector<double> services;
  for (const ClusterJob& job : jobs) services.push_back(job.service_seconds * job.gpus);
  const double longest = jobs.empty() ? 0 : *std::max_element(services.begin(), services.end());
  const GittinsIndex index(std::move(services));
  std::vector<Level> levels = {{0, -index.at(0)}};
  for (double from = 0.1 * kHour; from < longest; from *= 2) levels.push_back({from, -index.at(from)});
  return std::make_unique<AttainedService>("gittins", std::move(levels), jobs.size());
}

}  // namespace braid::sim

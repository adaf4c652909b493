#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/cluster/schedulers.h"
#include "sim/cluster/schedulers/allocation.h"
#include "sim/cluster/schedulers/ranked_jobs.h"

namespace braid::sim {
namespace {

/// How many jobs there have been, over time.
class Presence {
 public:
  /// As integrals until a moment.
  struct Until {
    double shares = 0;  // of the cluster, as each job there has: 1 / jobs
    double jobs = 0;
  };

  void change(double now, int by) {
    until_ = until(now);
    at_ = now;
    count_ += by;
  }
  Until until(double now) const {
    if (count_ == 0) return until_;
    return {until_.shares + (now - at_) / count_, until_.jobs + (now - at_) * count_};
  }

 private:
  Until until_;
  double at_ = 0, count_ = 0;
};

/// What a job has had, as a fair scheduler sees it.
struct Treatment {
  const ClusterJob& job;
  double elapsed_seconds = 0;   // since its submission
  double attained_seconds = 0;  // of service
  double share = 0;             // seconds of the whole cluster that were its equal share since then
  double mean_jobs = 0;         // that were there meanwhile; 0 at its submission
  std::int64_t cluster_gpus = 0;
};

/// Attained GPU time over its share (Gavel's LAS, OSDI'20: shares are equal).
double attained_over_share(const Treatment& had) {
  if (had.share <= 0) return 0;
  return had.attained_seconds * had.job.gpus / (had.share * static_cast<double>(had.cluster_gpus));
}

/// Minus the finish-time fairness (Themis, NSDI'20) that is predicted where a job goes on with its share of the
/// cluster, by the mean number of jobs so far: completion then over that of a job that has had its share all along.
double predicted_unfairness(const Treatment& had) {
  if (had.job.service_seconds <= 0) return -std::numeric_limits<double>::infinity();
  const double slowdown = std::max(1.0, had.mean_jobs * had.job.gpus / static_cast<double>(had.cluster_gpus));
  const double remaining = had.job.service_seconds - had.attained_seconds;
  return -(had.elapsed_seconds + remaining * slowdown) / (had.job.service_seconds * slowdown);
}

/// When a round begins those with the least keys run, as many as fit, ties by row. During a round nobody is stopped,
/// and GPUs that become free go to those who wait, by their keys when the round began or they were submitted. Cost:
/// O(waiting + running log running) a round while somebody waits.
class Rounds final : public Scheduler {
 public:
  using Key = double (*)(const Treatment&);

  Rounds(std::string_view name, Key key, std::size_t jobs) : name_(name), key_(key), at_submission_(jobs) {}

  std::string_view name() const override { return name_; }
  void submitted(const Cluster& cluster, JobIndex job) override {
    present_.change(cluster.now(), 1);
    at_submission_[static_cast<std::size_t>(job)] = present_.until(cluster.now());
    waiting_.add(cluster, rank(cluster, job));
  }
  void ended(const Cluster& cluster, JobIndex /*job*/) override { present_.change(cluster.now(), -1); }
  void interrupted(const Cluster& cluster, JobIndex job) override { waiting_.add(cluster, rank(cluster, job)); }

  void decide(Cluster& cluster) override {
    if (waiting_.empty()) return;
    const double round = std::floor(cluster.now() / kRoundSeconds);
    if (cluster.now() == round * kRoundSeconds) {
      const auto rank_of = [&](JobIndex job) { return rank(cluster, job); };
      waiting_.rank_anew(rank_of);
      waiting_.run_first(cluster, rank_of);
    } else {
      waiting_.start_fitting(cluster);
    }
    if (!waiting_.empty()) alarm_.set(cluster, (round + 1) * kRoundSeconds);
  }

 private:
  Rank rank(const Cluster& cluster, JobIndex job) const {
    Treatment had{cluster.jobs()[static_cast<std::size_t>(job)]};
    had.elapsed_seconds = cluster.now() - had.job.submit_seconds;
    had.attained_seconds = cluster.attained_seconds(job);
    had.cluster_gpus = cluster.gpus();
    const Presence::Until before = at_submission_[static_cast<std::size_t>(job)], until = present_.until(cluster.now());
    had.share = until.shares - before.shares;
    had.mean_jobs = had.elapsed_seconds > 0 ? (until.jobs - before.jobs) / had.elapsed_seconds : 0;
    // Those who were treated alike rank alike, whatever rounding made of it.
    constexpr double kDigits = 1e9;
    return {std::round(key_(had) * kDigits) / kDigits, 0, job};
  }

  std::string_view name_;
  Key key_;
  Presence present_;
  std::vector<Presence::Until> at_submission_;
  RankedJobs waiting_;
  Alarm alarm_;
};

}  // namespace

std::unique_ptr<Scheduler> make_max_min(const std::vector<ClusterJob>& jobs) {
  return std::make_unique<Rounds>("max-min", &attained_over_share, jobs.size());
}

std::unique_ptr<Scheduler> make_ftf(const std::vector<ClusterJob>& jobs) {
  return std::make_unique<Rounds>("ftf", &predicted_unfairness, jobs.size());
}

}  // namespace braid::sim

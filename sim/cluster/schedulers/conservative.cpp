#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "sim/cluster/moments.h"
#include "sim/cluster/schedulers.h"

namespace braid::sim {
namespace {

/// GPUs that nobody holds or has reserved, from each moment on until the next.
class FreeGpus {
 public:
  void reset(double now, std::int64_t free) {
    free_ = {{now, free}};
    found_.clear();
  }

  /// What was is forgotten.
  void forget_before(double now) {
    auto at = free_.upper_bound(now);
    if (at == free_.begin() || std::prev(at) == free_.begin()) return;
    free_.erase(free_.begin(), std::prev(at));
  }

  /// The first moment from `now` on from which so many are free for so long.
  /// Cost: O(changes between where the search must begin and the answer).
  double find(double now, std::int64_t gpus, double seconds) {
    double start = std::max(now, not_before(gpus, seconds));
    bool is_first = start <= std::max(now, not_before(gpus, 0));
    for (auto at = std::prev(free_.upper_bound(start));; ++at) {
      const double until = std::next(at) == free_.end() ? kNever : std::next(at)->first;
      if (at->second < gpus) {
        BRAID_CHECK(until != kNever, "{} GPUs are never free", gpus);
        start = until;
        continue;
      }
      if (is_first) keep(gpus, 0, start);
      is_first = false;
      if (until < start + seconds) continue;
      keep(gpus, seconds, start);
      return start;
    }
  }

  void take(double from, double to, std::int64_t gpus) {
    if (from >= to) return;
    cut(from);
    cut(to);
    for (auto at = free_.find(from); at->first < to; ++at) at->second -= gpus;
  }

 private:
  void cut(double time) {
    const auto after = free_.upper_bound(time);
    free_.emplace(time, std::prev(after)->second);
  }

  /// GPUs are only ever taken until the next reset: what was found for fewer GPUs or a shorter time is never too late
  /// to begin at. Lengths are told apart by eighths of a power of two, and below a second not at all.
  static constexpr std::size_t kLengths = 256;
  static std::size_t length(double seconds) {
    return seconds < 1 ? 0 : std::min(kLengths - 1, 1 + static_cast<std::size_t>(8 * std::log2(seconds)));
  }
  void keep(std::int64_t gpus, double seconds, double start) {
    const auto [of, is_new] = found_.try_emplace(gpus);
    if (is_new) of->second.fill(-kNever);
    // Of the shortest class only what holds for any length.
    if (seconds > 0 && length(seconds) == 0) return;
    double& found = of->second[length(seconds)];
    found = std::max(found, start);
  }
  double not_before(std::int64_t gpus, double seconds) const {
    double latest = -kNever;
    for (auto of = found_.begin(); of != found_.end() && of->first <= gpus; ++of) {
      // Those of its own class may be longer; the first holds for any length.
      latest = std::max(latest, of->second[0]);
      for (std::size_t shorter = 1; shorter < length(seconds); ++shorter)
        latest = std::max(latest, of->second[shorter]);
    }
    return latest;
  }

  std::map<double, std::int64_t> free_;
  std::map<std::int64_t, std::array<double, kLengths>> found_;  // by GPUs and length
};

/// Conservative backfilling (Mu'alem and Feitelson, TPDS 2001): every job has a reservation from its submission on, the
/// earliest that leaves those made before as they are. Jobs' times are known exactly, so that no reservation ever needs
/// to be moved to an earlier time; where jobs run for longer than that (backbones that are loaded) and where GPUs
/// break or come back, reservations are made anew in the order of submission. A reservation of no length keeps nobody
/// from its place. Cost: a submission looks through the reservations between where smaller jobs found room and its own.
class Conservative final : public Scheduler {
 public:
  std::string_view name() const override { return "conservative"; }
  void submitted(const Cluster& /*cluster*/, JobIndex job) override { submitted_.push_back(job); }
  void ended(const Cluster& cluster, JobIndex job) override {
    const auto planned = ends_.find(job);
    is_late_ = is_late_ || planned->second != cluster.now();
    ends_.erase(planned);
  }

  void interrupted(const Cluster& /*cluster*/, JobIndex job) override {
    ends_.erase(job);
    unreserved_.insert(job);
    is_late_ = true;
  }

  void decide(Cluster& cluster) override {
    const double now = cluster.now();
    is_late_ = is_late_ || (!reservations_.empty() && reservations_.begin()->first < now);
    if (std::exchange(gpus_, cluster.gpus()) != cluster.gpus()) is_late_ = true;
    if (ends_.empty() && reservations_.empty()) free_.reset(now, cluster.free_gpus());
    if (is_late_) reserve_anew(cluster);
    free_.forget_before(now);
    for (const JobIndex job : submitted_) reserve(cluster, job);
    submitted_.clear();
    while (start_due(cluster)) reserve_anew(cluster);
  }

 private:
  static std::size_t index(JobIndex job) { return static_cast<std::size_t>(job); }

  void reserve(const Cluster& cluster, JobIndex job) {
    const std::int32_t gpus = cluster.jobs()[index(job)].gpus;
    if (gpus > cluster.gpus()) {
      unreserved_.insert(job);
      return;
    }
    const double seconds = cluster.remaining_seconds(job), start = free_.find(cluster.now(), gpus, seconds);
    free_.take(start, start + seconds, gpus);
    reservations_.emplace(start, job);
  }

  void reserve_anew(const Cluster& cluster) {
    std::set<JobIndex> waiting = std::exchange(unreserved_, {});
    for (const auto& [start, job] : reservations_) waiting.insert(job);
    std::int64_t all = cluster.free_gpus();
    for (const auto& [job, end] : ends_) all += cluster.jobs()[index(job)].gpus;
    free_.reset(cluster.now(), all);
    for (auto& [job, end] : ends_) {
      end = cluster.finish_seconds(job);
      free_.take(cluster.now(), end, cluster.jobs()[index(job)].gpus);
    }
    reservations_.clear();
    for (const JobIndex job : waiting) reserve(cluster, job);
    is_late_ = false;
  }

  /// Whether what starts ends at another time than was reserved for it. A job that is due and does not fit (another of
  /// no length is in its place, or free GPUs are scattered over nodes) stays due.
  bool start_due(Cluster& cluster) {
    for (auto due = reservations_.begin(); due != reservations_.end() && due->first <= cluster.now();) {
      const JobIndex job = due->second;
      if (!cluster.fits(job)) {
        ++due;
        continue;
      }
      const double planned = cluster.now() + cluster.remaining_seconds(job);
      cluster.start(job);
      due = reservations_.erase(due);
      const double end = cluster.finish_seconds(job);
      ends_[job] = end;
      if (std::abs(end - planned) > kRounding * std::abs(end)) return true;
    }
    return false;
  }

  FreeGpus free_;
  std::vector<JobIndex> submitted_;
  std::set<std::pair<double, JobIndex>> reservations_;
  std::set<JobIndex> unreserved_;    // which more GPUs must be in service for, or that lost theirs just now
  std::map<JobIndex, double> ends_;  // of those that run, as planned
  std::int64_t gpus_ = 0;            // in service when reservations were made
  bool is_late_ = false;
};

}  // namespace

std::unique_ptr<Scheduler> make_conservative(const std::vector<ClusterJob>& jobs) {
  const auto other_size = [&](const ClusterJob& job) { return job.gpus != jobs.front().gpus; };
  // Among jobs of one size none can pass another without delaying it; and where tasks share instances there is no
  // other size.
  if (std::none_of(jobs.begin(), jobs.end(), other_size)) return make_fcfs(jobs);
  return std::make_unique<Conservative>();
}

}  // namespace braid::sim

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "sim/cluster/schedulers.h"

namespace braid::sim {
namespace {

/// Numbers at places 0..n-1; asked for the first place whose number is at most so large. A tree of minima.
class FirstAtMost {
 public:
  static constexpr double kNothing = std::numeric_limits<double>::infinity();

  explicit FirstAtMost(std::size_t count) {
    while (leaves_ < count) leaves_ *= 2;
    least_.assign(2 * leaves_, kNothing);
  }

  void set(std::size_t place, double number) {
    std::size_t node = leaves_ + place;
    least_[node] = number;
    for (node /= 2; node > 0; node /= 2) least_[node] = std::min(least_[2 * node], least_[2 * node + 1]);
  }

  /// Nothing is larger than every place.
  std::size_t find(double most) const {
    if (!(least_[1] <= most) || least_[1] == kNothing) return leaves_;
    std::size_t node = 1;
    while (node < leaves_) node = 2 * node + (least_[2 * node] <= most ? 0 : 1);
    return node - leaves_;
  }
  bool has(std::size_t place) const { return place < leaves_; }

 private:
  std::size_t leaves_ = 1;
  std::vector<double> least_;
};

/// EASY backfilling (Lifka 1995): the first in the queue has a reservation for when enough GPUs are free; whoever else
/// fits now goes ahead if it ends before then, or leaves enough GPUs at that time. Of those the first submitted goes
/// first. Jobs' times are known exactly, those of repairs are not.
class Easy final : public Scheduler {
 public:
  explicit Easy(const std::vector<ClusterJob>& jobs) : ends_(jobs.size(), 0), places_(jobs.size()) {
    std::map<std::int32_t, std::vector<JobIndex>> by_size;
    for (std::size_t j = 0; j < jobs.size(); ++j) by_size[jobs[j].gpus].push_back(static_cast<JobIndex>(j));
    for (auto& [gpus, members] : by_size) {
      for (std::size_t place = 0; place < members.size(); ++place)
        places_[static_cast<std::size_t>(members[place])] = {sizes_.size(), place};
      sizes_.push_back({gpus, FirstAtMost(members.size()), std::move(members)});
    }
  }

  std::string_view name() const override { return "easy"; }
  void submitted(const Cluster& cluster, JobIndex job) override {
    queue_.insert(job);
    const auto [size, place] = places_[index(job)];
    sizes_[size].waiting.set(place, cluster.remaining_seconds(job));
  }
  void ended(const Cluster& /*cluster*/, JobIndex job) override { running_.erase({ends_[index(job)], job}); }

  void decide(Cluster& cluster) override {
    while (!queue_.empty() && cluster.fits(*queue_.begin())) start(cluster, *queue_.begin());
    if (queue_.empty() || cluster.free_gpus() == 0) return;
    const Reservation reserved = reservation(cluster, cluster.jobs()[index(*queue_.begin())].gpus);
    std::int64_t spare = reserved.spare;
    while (true) {
      const JobIndex job = first_that_may_pass(cluster, reserved.time - cluster.now(), spare);
      if (job == kNobody) return;
      const ClusterJob& passing = cluster.jobs()[index(job)];
      if (cluster.now() + cluster.remaining_seconds(job) > reserved.time) spare -= passing.gpus;
      start(cluster, job);
    }
  }

 private:
  static constexpr JobIndex kNobody = std::numeric_limits<JobIndex>::max();

  /// Waiting jobs of one number of GPUs.
  struct Size {
    std::int32_t gpus = 0;
    FirstAtMost waiting;
    std::vector<JobIndex> members;  // in the order of submission
  };
  struct Reservation {
    double time = 0;
    std::int64_t spare = 0;  // GPUs free then that it does not need
  };

  static std::size_t index(JobIndex job) { return static_cast<std::size_t>(job); }

  /// When the running jobs, as they end, have freed enough: never, where only repairs will.
  Reservation reservation(const Cluster& cluster, std::int64_t gpus) const {
    std::int64_t free = cluster.free_gpus();
    double time = cluster.now();
    for (auto job = running_.begin(); job != running_.end() && (free < gpus || job->first == time); ++job) {
      free += cluster.jobs()[index(job->second)].gpus;
      time = job->first;
    }
    return {free < gpus ? std::numeric_limits<double>::max() : time, free - gpus};
  }

  JobIndex first_that_may_pass(Cluster& cluster, double time, std::int64_t spare) const {
    JobIndex first = kNobody;
    for (const Size& size : sizes_) {
      if (size.gpus > cluster.free_gpus()) break;
      const double most = size.gpus <= spare ? std::numeric_limits<double>::max() : time;
      const std::size_t place = size.waiting.find(most);
      if (!size.waiting.has(place)) continue;
      // The first in the queue itself does not fit.
      if (size.members[place] < first && size.members[place] != *queue_.begin() && cluster.fits(size.members[place]))
        first = size.members[place];
    }
    return first;
  }

  void start(Cluster& cluster, JobIndex job) {
    cluster.start(job);
    queue_.erase(job);
    ends_[index(job)] = cluster.finish_seconds(job);
    running_.emplace(ends_[index(job)], job);
    const auto [size, place] = places_[index(job)];
    sizes_[size].waiting.set(place, FirstAtMost::kNothing);
  }

  std::set<JobIndex> queue_;
  std::set<std::pair<double, JobIndex>> running_;            // by when they end
  std::vector<double> ends_;                                 // per job, once it has started
  std::vector<Size> sizes_;                                  // ascending by GPUs
  std::vector<std::pair<std::size_t, std::size_t>> places_;  // per job: its size, its place there
};

}  // namespace

std::unique_ptr<Scheduler> make_easy(const std::vector<ClusterJob>& jobs) {
  return std::make_unique<Easy>(jobs);
}

}  // namespace braid::sim

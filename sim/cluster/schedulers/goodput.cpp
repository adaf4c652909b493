#include <algorithm>
#include <cmath>
#include <set>

#include "sim/cluster/schedulers.h"
#include "sim/cluster/schedulers/allocation.h"
#include "sim/cluster/schedulers/ranked_jobs.h"

namespace braid::sim {
namespace {

/// Elastic (Pollux, OSDI'21, for jobs whose batch is fixed, where goodput is throughput): when a round begins GPUs are
/// dealt out anew, so that the jobs' paces add up to as much as they can, each as a share of that on the GPUs that it
/// asks for. Whoever gets none waits. During a round nobody's GPUs change, and whoever is submitted gets the fewest
/// that are free and let it run. Every job is alone on its instance. Where GPUs are scattered over nodes a job has as
/// many of its share as fit.
/// Cost: O(jobs x sizes x log jobs) a round in which jobs came, went or waited.
class Goodput final : public Scheduler {
 public:
  std::string_view name() const override { return "goodput"; }
  void submitted(const Cluster& /*cluster*/, JobIndex job) override {
    waiting_.insert(job);
    is_changed_ = true;
  }
  void ended(const Cluster& /*cluster*/, JobIndex /*job*/) override { is_changed_ = true; }

  void decide(Cluster& cluster) override {
    const double round = std::floor(cluster.now() / kRoundSeconds);
    if (is_changed_ && cluster.now() == round * kRoundSeconds) {
      deal_out(cluster);
      is_changed_ = false;
    }
    start_smallest(cluster);
    const bool any = !waiting_.empty() || !cluster.running().empty();
    if (any && (is_changed_ || !waiting_.empty())) {
      is_changed_ = true;
      alarm_.set(cluster, (round + 1) * kRoundSeconds);
    }
  }

 private:
  std::vector<GpuOption> options_of(Cluster& cluster, JobIndex job) const {
    std::vector<GpuOption> options;
    for (const std::int32_t gpus : cluster.sizes()) {
      if (const double pace = cluster.pace(job, gpus); pace > 0) options.push_back({gpus, pace});
    }
    return options;
  }

  void deal_out(Cluster& cluster) {
    std::vector<JobIndex> jobs(cluster.running().begin(), cluster.running().end());
    jobs.insert(jobs.end(), waiting_.begin(), waiting_.end());
    std::sort(jobs.begin(), jobs.end());
    std::vector<std::vector<GpuOption>> options;
    for (const JobIndex job : jobs) options.push_back(options_of(cluster, job));
    const std::vector<std::int32_t> given = allocate(cluster.gpus(), options);
    const auto each = [&](const auto& visit) {
      for (std::size_t j = 0; j < jobs.size(); ++j) visit(jobs[j], given[j], waiting_.contains(jobs[j]));
    };
    // Those that get fewer make room for the others.
    std::set<JobIndex> stopped;
    each([&](JobIndex job, std::int32_t gpus, bool waits) {
      if (waits || gpus >= cluster.gpus_of(job)) return;
      if (gpus > 0) {
        cluster.resize(job, gpus);
      } else {
        cluster.preempt(job);
        stopped.insert(job);
      }
    });
    each([&](JobIndex job, std::int32_t gpus, bool waits) {
      if (gpus == 0 || (!waits && gpus <= cluster.gpus_of(job))) return;
      if (waits) {
        if (cluster.fits_alone(gpus)) start(cluster, job, gpus);
      } else if (cluster.can_resize(job, gpus)) {
        cluster.resize(job, gpus);
      }
    });
    // They wait for the next round.
    waiting_.insert(stopped.begin(), stopped.end());
    held_back_ = std::move(stopped);
  }

  void start(Cluster& cluster, JobIndex job, std::int32_t gpus) {
    cluster.start_alone(job, gpus);
    waiting_.erase(job);
  }

  void start_smallest(Cluster& cluster) {
    const std::vector<JobIndex> waiting(waiting_.begin(), waiting_.end());
    for (const JobIndex job : waiting) {
      if (!cluster.fits_alone(cluster.sizes().front())) break;
      if (held_back_.contains(job)) continue;
      for (const std::int32_t gpus : cluster.sizes()) {
        if (cluster.pace(job, gpus) <= 0) continue;
        if (cluster.fits_alone(gpus)) start(cluster, job, gpus);
        break;
      }
    }
    held_back_.clear();
  }

  std::set<JobIndex> waiting_, held_back_;
  bool is_changed_ = false;
  Alarm alarm_;
};

}  // namespace

std::unique_ptr<Scheduler> make_goodput(const std::vector<ClusterJob>& /*jobs*/) {
  return std::make_unique<Goodput>();
}

}  // namespace braid::sim

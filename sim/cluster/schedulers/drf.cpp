#include <map>
#include <set>
#include <tuple>

#include "sim/cluster/schedulers.h"

namespace braid::sim {
namespace {

/// Dominant resource fairness (Ghodsi et al., NSDI'11, Algorithm 1) of virtual clusters, whose one resource is GPUs: of
/// those with jobs waiting the one that holds the fewest GPUs for its quota starts its next, in the order of
/// submission. Where that does not fit the cluster counts as full, and it goes next when GPUs are free. Jobs of no
/// virtual cluster are together in one. Never preempts.
class DominantResourceFairness final : public Scheduler {
 public:
  std::string_view name() const override { return "drf"; }

  void submitted(const Cluster& cluster, JobIndex job) override {
    change(of(cluster, job), [&](VirtualCluster& its) {
      its.quota = cluster.jobs()[static_cast<std::size_t>(job)].quota;
      its.queue.insert(job);
    });
  }
  void ended(const Cluster& cluster, JobIndex job) override {
    change(of(cluster, job), [&](VirtualCluster& its) { its.held -= gpus(cluster, job); });
  }
  void decide(Cluster& cluster) override {
    while (!order_.empty()) {
      const auto [share, job, virtual_cluster] = *order_.begin();
      if (!cluster.fits(job)) return;
      cluster.start(job);
      change(virtual_cluster, [&](VirtualCluster& its) {
        its.held += gpus(cluster, *its.queue.begin());
        its.queue.erase(its.queue.begin());
      });
    }
  }

 private:
  struct VirtualCluster {
    std::int64_t held = 0;  // GPUs
    double quota = 1;
    std::set<JobIndex> queue;

    double share() const { return static_cast<double>(held) / quota; }
  };

  static std::int32_t of(const Cluster& cluster, JobIndex job) {
    return cluster.jobs()[static_cast<std::size_t>(job)].virtual_cluster;
  }
  static std::int32_t gpus(const Cluster& cluster, JobIndex job) {
    return cluster.jobs()[static_cast<std::size_t>(job)].gpus;
  }

  template <typename Change>
  void change(std::int32_t virtual_cluster, const Change& change) {
    VirtualCluster& its = all_[virtual_cluster];
    if (!its.queue.empty()) order_.erase({its.share(), *its.queue.begin(), virtual_cluster});
    change(its);
    if (!its.queue.empty()) order_.emplace(its.share(), *its.queue.begin(), virtual_cluster);
  }

  std::map<std::int32_t, VirtualCluster> all_;
  /// Of those with jobs waiting: GPUs held over the quota, the next job, the virtual cluster.
  std::set<std::tuple<double, JobIndex, std::int32_t>> order_;
};

}  // namespace

std::unique_ptr<Scheduler> make_drf(const std::vector<ClusterJob>& /*jobs*/) {
  return std::make_unique<DominantResourceFairness>();
}

}  // namespace braid::sim

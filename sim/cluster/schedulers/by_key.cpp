#include <functional>

#include "sim/cluster/schedulers.h"
#include "sim/cluster/schedulers/ranked_jobs.h"

namespace braid::sim {
namespace {

/// Never preempts: of the waiting jobs that fit the one with the least key starts, ties by row, until none fits.
class ByKey final : public Scheduler {
 public:
  using Key = std::function<double(const ClusterJob&)>;

  ByKey(std::string_view name, Key key) : name_(name), key_(std::move(key)) {}

  std::string_view name() const override { return name_; }
  void submitted(const Cluster& cluster, JobIndex job) override {
    waiting_.add(cluster, {key_(cluster.jobs()[static_cast<std::size_t>(job)]), 0, job});
  }
  void decide(Cluster& cluster) override { waiting_.start_fitting(cluster); }

 private:
  std::string_view name_;
  Key key_;
  RankedJobs waiting_;
};

}  // namespace

std::unique_ptr<Scheduler> make_fcfs_any(const std::vector<ClusterJob>& /*jobs*/) {
  return std::make_unique<ByKey>("fcfs-any", [](const ClusterJob& job) { return job.submit_seconds; });
}

std::unique_ptr<Scheduler> make_sjf(const std::vector<ClusterJob>& /*jobs*/) {
  return std::make_unique<ByKey>("sjf", [](const ClusterJob& job) { return job.service_seconds; });
}

}  // namespace braid::sim

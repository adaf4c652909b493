#include "sim/cluster/schedulers.h"
#include "sim/cluster/schedulers/ranked_jobs.h"

namespace braid::sim {
namespace {

/// The jobs with the least keys run, as many as fit, whoever must stop for it; ties by row. Keys of waiting jobs stay
/// as they are, those of running ones never rise: whoever runs is overtaken by submissions alone.
class Preemptive final : public Scheduler {
 public:
  /// Of a job with so many seconds of service left.
  using Key = double (*)(const ClusterJob&, double remaining_seconds);

  Preemptive(std::string_view name, Key key) : name_(name), key_(key) {}

  std::string_view name() const override { return name_; }
  void submitted(const Cluster& cluster, JobIndex job) override { waiting_.add(cluster, rank(cluster, job)); }
  void decide(Cluster& cluster) override {
    if (!waiting_.empty()) waiting_.run_first(cluster, [&](JobIndex job) { return rank(cluster, job); });
  }

 private:
  Rank rank(const Cluster& cluster, JobIndex job) const {
    return {key_(cluster.jobs()[static_cast<std::size_t>(job)], cluster.remaining_seconds(job)), 0, job};
  }

  std::string_view name_;
  Key key_;
  RankedJobs waiting_;
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
  return std::make_unique<Preemptive>("priority",
                                      [](const ClusterJob& job, double) { return static_cast<double>(-job.priority); });
}

std::unique_ptr<Scheduler> make_edf(const std::vector<ClusterJob>& /*jobs*/) {
  return std::make_unique<Preemptive>("edf", [](const ClusterJob& job, double) { return job.deadline_seconds; });
}

}  // namespace braid::sim

#include "base/units.h"
#include "sim/cluster/moments.h"
#include "sim/cluster/schedulers.h"
#include "sim/cluster/schedulers/ranked_jobs.h"

namespace braid::sim {
namespace {

/// A job whose service x GPUs costs more than its budget is refused when it is submitted. Of the others that whose
/// budget leaves the least beside its cost goes first, whoever fits, ties by row; jobs without a budget go last. Never
/// preempts, so that no job costs more than was reckoned where it runs alone.
class Budget final : public Scheduler {
 public:
  std::string_view name() const override { return "budget"; }
  void submitted(const Cluster& cluster, JobIndex job) override {
    const ClusterJob& submitted = cluster.jobs()[static_cast<std::size_t>(job)];
    const double cost = submitted.service_seconds * submitted.gpus / kHour, slack = submitted.budget - cost;
    if (slack < -kRounding * cost) {
      too_dear_.push_back(job);
    } else {
      waiting_.add(cluster, {slack, 0, job});
    }
  }
  void decide(Cluster& cluster) override {
    for (const JobIndex job : too_dear_) cluster.reject(job);
    too_dear_.clear();
    waiting_.start_fitting(cluster);
  }

 private:
  std::vector<JobIndex> too_dear_;
  RankedJobs waiting_;
};

}  // namespace

std::unique_ptr<Scheduler> make_budget(const std::vector<ClusterJob>& /*jobs*/) {
  return std::make_unique<Budget>();
}

}  // namespace braid::sim

#pragma once

#include <functional>
#include <set>

#include "sim/cluster/scheduler.h"

namespace braid::sim::testing {

/// Hands everything on to a scheduler, and looks at what it does.
class Watched final : public Scheduler {
 public:
  explicit Watched(Scheduler& scheduler) : scheduler_(scheduler) {}

  std::string_view name() const override { return scheduler_.name(); }
  Joining joining() const override { return scheduler_.joining(); }
  void submitted(const Cluster& cluster, JobIndex job) override { scheduler_.submitted(cluster, job); }
  void ended(const Cluster& cluster, JobIndex job) override { scheduler_.ended(cluster, job); }
  void decide(Cluster& cluster) override {
    ++decisions_;
    Seen seen(cluster);
    scheduler_.decide(seen);
    restarts_ = restarts_ || seen.restarts;
    if (after) after(cluster);
  }

  std::function<void(const Cluster&)> after = nullptr;  ///< is shown the cluster after each decision

  int decisions() const { return decisions_; }
  /// Whether a job was stopped and started in one decision, in either order.
  bool restarts() const { return restarts_; }

 private:
  /// The cluster in one decision.
  class Seen final : public Cluster {
   public:
    explicit Seen(Cluster& cluster) : cluster_(cluster) {}

    double now() const override { return cluster_.now(); }
    const std::vector<ClusterJob>& jobs() const override { return cluster_.jobs(); }
    std::int64_t gpus() const override { return cluster_.gpus(); }
    std::int64_t room_for(std::int64_t gpus) const override { return cluster_.room_for(gpus); }
    double part_of_instance(JobIndex job) const override { return cluster_.part_of_instance(job); }
    std::int64_t free_gpus() const override { return cluster_.free_gpus(); }
    bool fits(JobIndex job) override { return cluster_.fits(job); }
    const std::vector<JobIndex>& running() const override { return cluster_.running(); }
    double attained_seconds(JobIndex job) const override { return cluster_.attained_seconds(job); }
    double remaining_seconds(JobIndex job) const override { return cluster_.remaining_seconds(job); }
    double finish_seconds(JobIndex job) const override { return cluster_.finish_seconds(job); }
    bool fits_alone(std::int64_t gpus) const override { return cluster_.fits_alone(gpus); }
    const std::vector<std::int32_t>& sizes() const override { return cluster_.sizes(); }
    double pace(JobIndex job, std::int32_t gpus) override { return cluster_.pace(job, gpus); }
    bool can_resize(JobIndex job, std::int64_t gpus) override { return cluster_.can_resize(job, gpus); }
    std::int64_t gpus_of(JobIndex job) const override { return cluster_.gpus_of(job); }
    void start(JobIndex job) override {
      see(job);
      cluster_.start(job);
    }
    void start_alone(JobIndex job, std::int64_t gpus) override {
      see(job);
      cluster_.start_alone(job, gpus);
    }
    void resize(JobIndex job, std::int64_t gpus) override {
      see(job);
      cluster_.resize(job, gpus);
    }
    void preempt(JobIndex job) override {
      see(job);
      cluster_.preempt(job);
    }
    void reject(JobIndex job) override { cluster_.reject(job); }
    void wake_at(double seconds) override { cluster_.wake_at(seconds); }

    bool restarts = false;

   private:
    void see(JobIndex job) { restarts = !changed_.insert(job).second || restarts; }

    Cluster& cluster_;
    std::set<JobIndex> changed_;
  };

  Scheduler& scheduler_;
  int decisions_ = 0;
  bool restarts_ = false;
};

}  // namespace braid::sim::testing

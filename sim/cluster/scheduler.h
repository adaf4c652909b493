#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster/instances/instance_choice.h"

namespace braid::sim {

/// A cluster at one moment, as a scheduler sees and changes it.
class Cluster {
 public:
  virtual ~Cluster() = default;

  virtual double now() const = 0;
  virtual const std::vector<ClusterJob>& jobs() const = 0;
  /// In service; how many jobs of so many GPUs each they would have room for, were all free.
  virtual std::int64_t gpus() const = 0;
  virtual std::int64_t room_for(std::int64_t gpus) const = 0;
  /// How much of an instance a job takes up: 1 where instances are not shared, else by how many of its kind fit one.
  virtual double part_of_instance(JobIndex job) const = 0;
  /// Held by no running job.
  virtual std::int64_t free_gpus() const = 0;
  /// Whether a waiting job can start now, on GPUs of its own or on those of others.
  virtual bool fits(JobIndex job) = 0;

  /// Running jobs, in no order.
  virtual const std::vector<JobIndex>& running() const = 0;
  /// Seconds of service that a job has had; must still have: as it would take alone.
  virtual double attained_seconds(JobIndex job) const = 0;
  virtual double remaining_seconds(JobIndex job) const = 0;
  /// When a running job ends if nothing changes on its instance.
  virtual double finish_seconds(JobIndex job) const = 0;

  /// Whether a job of so many GPUs can start now on some that nobody else uses.
  virtual bool fits_alone(std::int64_t gpus) const = 0;
  /// GPUs that an instance may have, ascending; one number alone, where it may not change.
  virtual const std::vector<std::int32_t>& sizes() const = 0;
  /// How fast a job is on such an instance, as a share of its pace on the GPUs it asks for; 0: it does not fit.
  virtual double pace(JobIndex job, std::int32_t gpus) = 0;
  /// Of the instance that a running job is on.
  virtual std::int64_t gpus_of(JobIndex job) const = 0;

  /// Gives a waiting job its GPUs, or a place on those of others; it must fit.
  virtual void start(JobIndex job) = 0;
  /// Gives it an instance of so many GPUs that nobody else may join; it must fit alone.
  virtual void start_alone(JobIndex job, std::int64_t gpus) = 0;
  virtual bool can_resize(JobIndex job, std::int64_t gpus) = 0;
  /// Takes the GPUs of a job that is alone away and gives it as many as these, which must fit then; what that takes is
  /// a backbone's loading. Not counted as a preemption.
  virtual void resize(JobIndex job, std::int64_t gpus) = 0;
  /// Takes a running job's GPUs away; it keeps what it has done and waits again.
  virtual void preempt(JobIndex job) = 0;
  /// Refuses a waiting job for good.
  virtual void reject(JobIndex job) = 0;
  /// Asks for another decision at `seconds`, though nothing happens then.
  virtual void wake_at(double seconds) = 0;
};

/// Decides which jobs run. One scheduler serves one simulation. What happens at one instant is told first, then
/// `decide` is called once.
class Scheduler {
 public:
  virtual ~Scheduler() = default;

  virtual std::string_view name() const = 0;
  /// Which instance a job joins that is started.
  virtual Joining joining() const { return Joining::fastest; }
  /// A job was submitted. Those that it preempts it remembers itself.
  virtual void submitted(const Cluster& cluster, JobIndex job) = 0;
  /// A running job ended.
  virtual void ended(const Cluster& /*cluster*/, JobIndex /*job*/) {}
  /// A running job lost GPUs to a failure and waits again, maybe with less done.
  virtual void interrupted(const Cluster& cluster, JobIndex job) {
    ended(cluster, job);
    submitted(cluster, job);
  }
  virtual void decide(Cluster& cluster) = 0;
};

struct SchedulerKind {
  std::string_view name;
  std::string_view what;
  std::unique_ptr<Scheduler> (*make)(const std::vector<ClusterJob>& jobs);
  bool is_elastic = false;  ///< asks for instances of several sizes
};

/// All that there are.
const std::vector<SchedulerKind>& scheduler_kinds();
/// Whether the scheduler of this name asks for instances of several sizes.
bool is_elastic(const std::string& scheduler);
/// Throws Error for an unknown name, which lists those there are.
std::unique_ptr<Scheduler> make_scheduler(const std::string& name, const std::vector<ClusterJob>& jobs);

}  // namespace braid::sim

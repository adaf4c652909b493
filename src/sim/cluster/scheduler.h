#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster/job.h"

namespace braid::sim {

/// A cluster at one moment, as a scheduler sees and changes it.
class Cluster {
 public:
  virtual ~Cluster() = default;

  virtual double now() const = 0;
  virtual const std::vector<ClusterJob>& jobs() const = 0;
  virtual std::int64_t free_gpus() const = 0;
  /// Whether so many GPUs can be given together now.
  virtual bool fits(std::int64_t gpus) const = 0;

  /// Running jobs, in no order.
  virtual const std::vector<JobIndex>& running() const = 0;
  /// Seconds of service that a job has had; must still have.
  virtual double attained_seconds(JobIndex job) const = 0;
  virtual double remaining_seconds(JobIndex job) const = 0;
  /// When a running job ends if nothing stops it.
  virtual double finish_seconds(JobIndex job) const = 0;

  /// Gives a waiting job its GPUs, which must fit.
  virtual void start(JobIndex job) = 0;
  /// Takes a running job's GPUs away; it keeps what it has done and waits again.
  virtual void preempt(JobIndex job) = 0;
  /// Asks for another decision at `seconds`, though nothing happens then.
  virtual void wake_at(double seconds) = 0;
};

/// Decides which jobs run. One scheduler serves one simulation. What happens at one instant is told first, then
/// `decide` is called once.
class Scheduler {
 public:
  virtual ~Scheduler() = default;

  virtual std::string_view name() const = 0;
  /// A job was submitted. Those that it preempts it remembers itself.
  virtual void submitted(const Cluster& cluster, JobIndex job) = 0;
  /// A running job ended.
  virtual void ended(const Cluster& /*cluster*/, JobIndex /*job*/) {}
  virtual void decide(Cluster& cluster) = 0;
};

struct SchedulerKind {
  std::string_view name;
  std::string_view what;
  std::unique_ptr<Scheduler> (*make)(const std::vector<ClusterJob>& jobs);
};

/// All that there are.
const std::vector<SchedulerKind>& scheduler_kinds();
/// Throws Error for an unknown name, which lists those there are.
std::unique_ptr<Scheduler> make_scheduler(const std::string& name, const std::vector<ClusterJob>& jobs);

}  // namespace braid::sim

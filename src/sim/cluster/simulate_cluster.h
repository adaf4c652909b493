#pragma once

#include "sim/cluster/gpu_pool.h"
#include "sim/cluster/scheduler.h"
#include "sim/cluster/usage.h"

namespace braid::sim {

/// How instances come and change.
struct InstanceRules {
  double load_seconds = 0;    ///< until a new instance, or one whose layers move, has its backbone
  double replan_seconds = 0;  ///< that an instance stands still for when a task joins or leaves others
  double horizon_seconds = std::numeric_limits<double>::infinity();  ///< after the first submission; all is over then
  double usage_bin_seconds = 3600;                                   ///< of ClusterRun::usage
  double audited_share = 0;                                          ///< of sets that instances change to
  std::uint64_t audit_seed = 0;
};

/// What a cluster did.
struct ClusterRun {
  std::vector<JobOutcome> outcomes;  ///< per job
  double first_submit_seconds = 0;
  double end_seconds = 0;               ///< when the last job ended, or the horizon
  double allocated_gpu_seconds = 0;     ///< GPUs held, over time
  double waiting_free_gpu_seconds = 0;  ///< GPUs free while jobs waited: what fragmentation and order left unused
  double tokens = 0;                    ///< billed
  std::int64_t instances = 0;           ///< started
  std::int64_t replans = 0;             ///< tasks that joined or left others
  std::vector<SetIndex> audited;        ///< drawn from the sets that instances changed to, as often as drawn
  SaturatedSpan saturated;
  Usage usage;
};

/// Runs jobs until all have ended, or the horizon. Each runs on an instance of `gpus` GPUs, by itself or with such
/// others as `sets` allow, all of them at the pace that their set has. Jobs larger than the pool, or that fit no
/// instance, are rejected, and those that the scheduler refuses. An instance is started when a job starts that joins
/// none, and given up when its last job has left and nobody took the place at that moment. Where tasks share instances
/// all jobs must ask for the same number of GPUs.
///
/// Events of one instant are taken together: ends first, then submissions in the order of the jobs, then one decision.
/// Checked all along: no GPU is given twice, gangs are whole, nothing happens in the past, each job does exactly the
/// steps that it must. Jobs must be sorted by submission.
/// Cost: O(log running + tasks of an instance) an event, besides the scheduler's and the estimates' own.
ClusterRun simulate_cluster(const std::vector<ClusterJob>& jobs, GpuPool pool, Scheduler& scheduler, TaskSets& sets,
                            const InstanceRules& rules = {});

}  // namespace braid::sim

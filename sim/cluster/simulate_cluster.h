#pragma once

#include "sim/cluster/instances/instance_rules.h"
#include "sim/cluster/run_meter.h"
#include "sim/cluster/scheduler.h"

namespace braid::sim {

/// A job on an instance, from its start there until it ends or must stop.
struct Stretch {
  JobIndex job = 0;
  std::int32_t instance = 0;  ///< by number
  std::int32_t node = 0;      ///< of the first of its GPUs
  std::int64_t gpus = 0;      ///< of the instance
  double from_seconds = 0, to_seconds = 0;
};

/// GPUs of a node that break or come back.
struct Break {
  double seconds = 0;
  NodeGpus gpus;
  bool repaired = false;
};

/// What a cluster did.
struct ClusterRun {
  std::vector<JobOutcome> outcomes;  ///< per job
  double first_submit_seconds = 0;
  double end_seconds = 0;         ///< when the last job ended, or the horizon
  double tokens = 0;              ///< billed, but for those lost
  double lost_tokens = 0;         ///< whose work failures undid
  double lost_gpu_seconds = 0;    ///< of that work
  double busy_gpu_seconds = 0;    ///< computing, what was lost among it
  std::int64_t outages = 0;       ///< that began
  std::int64_t instances = 0;     ///< started
  std::int64_t replans = 0;       ///< tasks that joined or left others
  std::int64_t resizes = 0;       ///< of instances
  std::vector<SetIndex> audited;  ///< drawn from the sets that instances changed to, as often as drawn
  RunMeter::Sums sums;
  Usage usage;                     ///< its tokens are billed, those lost later among them
  std::vector<Stretch> stretches;  ///< by their ends
  std::vector<Break> breaks;
};

/// Runs jobs until all have ended, or the horizon. Each runs on an instance of `gpus` GPUs, by itself or with such
/// others as `sets` allow, all of them at the pace that their set has. Jobs larger than the pool, or that fit no
/// instance, are rejected, and those that the scheduler refuses. An instance is started when a job starts that joins
/// none, and given up when its last job has left and nobody took the place at that moment. Where tasks share instances
/// all jobs must ask for the same number of GPUs.
///
/// Where GPUs fail, the instances on them are given up, and their jobs wait again with what the last checkpoint has of
/// them: one is taken whenever tasks join or leave an instance or are stopped, and each time that it has run for so
/// long since. Taking one costs nothing: adapters are small. Throws Error where failures keep all jobs from ending.
///
/// Events of one instant are taken together: ends first, then repairs and failures, then submissions in the order of
/// the jobs, then one decision.
/// Checked all along: no GPU is given twice, gangs are whole, nothing happens in the past, each job does exactly the
/// steps that it must. Jobs must be sorted by submission.
/// Cost: O(log running + tasks of an instance) an event, besides the scheduler's and the estimates' own.
ClusterRun simulate_cluster(const std::vector<ClusterJob>& jobs, GpuPool pool, Scheduler& scheduler, TaskSets& sets,
                            const InstanceRules& rules = {});

}  // namespace braid::sim

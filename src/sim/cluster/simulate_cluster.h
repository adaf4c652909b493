#pragma once

#include "sim/cluster/gpu_pool.h"
#include "sim/cluster/scheduler.h"

namespace braid::sim {

/// What a cluster did.
struct ClusterRun {
  std::vector<JobOutcome> outcomes;  ///< per job
  double first_submit_seconds = 0;
  double end_seconds = 0;               ///< when the last job ended
  double allocated_gpu_seconds = 0;     ///< GPUs held, over time
  double waiting_free_gpu_seconds = 0;  ///< GPUs free while jobs waited: what fragmentation and order left unused
};

/// Runs jobs, each alone on its GPUs for its service time, until all have ended. Jobs larger than the pool are
/// rejected.
///
/// Events of one instant are taken together: ends first, then submissions in the order of the jobs, then one decision.
/// Checked all along: no GPU is given twice, gangs are whole, nothing happens in the past, each job is served for
/// exactly its service time. Jobs must be sorted by submission.
/// Cost: O(log running) an event, besides the scheduler's own.
ClusterRun simulate_cluster(const std::vector<ClusterJob>& jobs, GpuPool pool, Scheduler& scheduler);

}  // namespace braid::sim

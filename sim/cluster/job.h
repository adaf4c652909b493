#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sim/cluster/moments.h"

namespace braid::sim {

/// Place in the trace.
using JobIndex = std::int32_t;
/// Of a fine-tuning task: jobs of one kind are alike but for how long they run.
using KindIndex = std::int32_t;

/// A job as schedulers know it. All of its GPUs are given together.
struct ClusterJob {
  double submit_seconds = 0;
  double service_seconds = 0;         ///< that it must run for, alone on an instance
  std::int32_t gpus = 1;              ///< of the instance that it runs on
  std::int32_t virtual_cluster = -1;  ///< -1: none
  double quota = 1;                   ///< of the virtual cluster, over that of another
  std::int32_t priority = 0;          ///< larger first
  double deadline_seconds = kNever;
  KindIndex kind = 0;
  double reference_seconds = 0;  ///< that it was recorded to run for: what fairness is measured by
  double budget = std::numeric_limits<double>::infinity();  ///< what it may cost, in GPU-hours
};

/// What became of it.
struct JobOutcome {
  double start_seconds = kNever;  ///< first start
  double finish_seconds = kNever;
  double run_seconds = 0;      ///< in service, alone or not
  double steps = 0;            ///< done
  std::int32_t instance = -1;  ///< the last that it ran on; numbered as they are started
  std::int32_t preemptions = 0;
  std::int32_t restarts = 0;  ///< because GPUs failed
  std::int64_t gpus = 0;      ///< of that instance, when it last changed
  bool shared = false;        ///< had company at some time
  bool rejected = false;

  bool finished() const { return finish_seconds != kNever; }
};

}  // namespace braid::sim

#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace braid::sim {

/// Place in the trace.
using JobIndex = std::int32_t;

/// A job as schedulers know it. All of its GPUs are given together.
struct ClusterJob {
  double submit_seconds = 0;
  double service_seconds = 0;  ///< that it must run for
  std::int32_t gpus = 1;
  std::int32_t virtual_cluster = -1;  ///< -1: none
  std::int32_t priority = 0;          ///< larger first
  double deadline_seconds = std::numeric_limits<double>::infinity();
};

/// What became of it.
struct JobOutcome {
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  double start_seconds = kNever;  ///< first start
  double finish_seconds = kNever;
  double run_seconds = 0;  ///< in service
  std::int32_t preemptions = 0;
  bool rejected = false;

  bool finished() const { return finish_seconds != kNever; }
};

}  // namespace braid::sim

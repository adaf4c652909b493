#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "traces/trace.h"

namespace braid::traces {

/// Of durations, in seconds.
struct Distribution {
  double mean = 0, deviation = 0;  ///< of all jobs, not a sample of them
  double median = 0, p90 = 0, p99 = 0, least = 0, most = 0;
};

struct TraceStatistics {
  std::int64_t jobs = 0;
  double span_seconds = 0;            ///< first to last submission
  double jobs_per_minute = 0;         ///< jobs / span; 0 where all come at once
  double interarrival_variation = 0;  ///< deviation / mean of the times between submissions; 1 for a Poisson process
  std::array<double, 24> jobs_per_minute_of_hour{};  ///< by the hour of the trace's day
  Distribution duration;
  double work_of_longest = 0;  ///< share of all GPU-seconds that the longest 1 % of jobs take
  std::map<std::int32_t, std::int64_t> jobs_by_gpus;
  double gpu_seconds = 0;
  struct VirtualCluster {
    std::string name;
    std::int64_t jobs = 0;
    double gpu_seconds = 0;
  };
  std::vector<VirtualCluster> virtual_clusters;  ///< most GPU-seconds first
};

TraceStatistics statistics_of(const Trace& trace);

/// GPU-seconds submitted in a second, divided by `gpus`: 1 and more can never be served. Jobs have the GPUs recorded,
/// or `gpus_of_each` where it is above 0. Infinite where all jobs come at once.
double offered_load(const Trace& trace, std::int64_t gpus, std::int32_t gpus_of_each = 0);

}  // namespace braid::traces

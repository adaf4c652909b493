#pragma once

#include <algorithm>
#include <functional>
#include <utility>

#include "sim/cluster/job.h"
#include "sim/cluster/moments.h"

namespace braid::sim::testing {

/// Of the clocks of studies.
inline constexpr double kTick = 10;

/// Jobs on a flat pool of GPUs that may be stopped, told the long way: at every tick each job is asked where it ranks,
/// and whoever ranks first runs, as many as fit. All times must be whole ticks.
struct Ticking {
  const std::vector<ClusterJob>& jobs;
  std::int64_t gpus = 0;
  double tick = 1;

  /// Where a job ranks at this tick; ties by row.
  std::function<std::pair<double, double>(std::size_t job)> rank = {};
  /// Whether jobs are stopped at this tick.
  std::function<bool()> preempts = [] { return true; };
  /// Before jobs are ranked.
  std::function<void()> before = [] {};

  double now = 0;
  std::vector<double> attained = std::vector<double>(jobs.size(), 0);  // seconds
  std::vector<double> start = std::vector<double>(jobs.size(), kNever), finish = start;
  std::vector<bool> runs = std::vector<bool>(jobs.size(), false);

  bool is_there(std::size_t j) const { return jobs[j].submit_seconds <= now && finish[j] == kNever; }

  void run() {
    while (std::count(finish.begin(), finish.end(), kNever) > 0) {
      // Jobs of no length end at once and may let others in.
      do {
        before();
        decide();
      } while (end_those_done());
      for (std::size_t j = 0; j < jobs.size(); ++j) attained[j] += runs[j] ? tick : 0;
      now += tick;
      end_those_done();
    }
  }

 private:
  void decide() {
    std::vector<std::pair<std::pair<double, double>, std::size_t>> order;
    std::int64_t free = gpus;
    const bool all = preempts();
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      if (!is_there(j)) continue;
      if (all || !runs[j]) {
        order.emplace_back(rank(j), j);
      } else {
        free -= jobs[j].gpus;
      }
    }
    std::sort(order.begin(), order.end());
    for (const auto& [rank_of_it, j] : order) {
      runs[j] = jobs[j].gpus <= free;
      if (runs[j]) free -= jobs[j].gpus;
    }
    // Whoever starts was ranked as one that had not.
    for (const auto& [rank_of_it, j] : order) {
      if (runs[j]) start[j] = std::min(start[j], now);
    }
  }

  bool end_those_done() {
    bool is_any = false;
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      if (!runs[j] || attained[j] < jobs[j].service_seconds) continue;
      runs[j] = false;
      finish[j] = now;
      is_any = true;
    }
    return is_any;
  }
};

}  // namespace braid::sim::testing

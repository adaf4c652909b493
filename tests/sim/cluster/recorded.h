#pragma once

#include <array>
#include <cmath>
#include <functional>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/random.h"
#include "sim/cluster/moments.h"
#include "sim/cluster/simulate_cluster.h"

/// Jobs as recorded on a flat pool of GPUs, for the tests of schedulers.
namespace braid::sim::testing {

inline GpuPool flat_pool(std::int64_t gpus) {
  return {gpus, 1, true, Placement::packed};
}

inline ClusterRun run(const std::vector<ClusterJob>& jobs, std::int64_t gpus, const std::string& name) {
  const std::unique_ptr<Scheduler> scheduler = make_scheduler(name, jobs);
  TaskSets sets = exclusive_sets();
  return simulate_cluster(jobs, flat_pool(gpus), *scheduler, sets);
}

inline ClusterJob job(double submit, double service, std::int32_t gpus = 1) {
  ClusterJob made;
  made.submit_seconds = submit;
  made.service_seconds = service;
  made.gpus = gpus;
  return made;
}

/// In GPU-hours.
inline double cost(const ClusterJob& job) {
  return job.service_seconds * job.gpus / 3600;
}

inline std::vector<double> starts(const ClusterRun& run) {
  std::vector<double> times;
  for (const JobOutcome& outcome : run.outcomes) times.push_back(outcome.start_seconds);
  return times;
}

inline std::vector<double> finishes(const ClusterRun& run) {
  std::vector<double> times;
  for (const JobOutcome& outcome : run.outcomes) times.push_back(outcome.finish_seconds);
  return times;
}

inline double mean_completion(const std::vector<ClusterJob>& jobs, const ClusterRun& run) {
  double sum = 0;
  for (std::size_t j = 0; j < jobs.size(); ++j) sum += run.outcomes[j].finish_seconds - jobs[j].submit_seconds;
  return sum / static_cast<double>(jobs.size());
}

/// Whole seconds, so that sums are exact.
inline std::vector<ClusterJob> any_jobs(int most_gpus, int most_jobs = 40) {
  std::vector<ClusterJob> jobs;
  double now = 0;
  for (int count = *rc::gen::inRange(1, most_jobs); count > 0; --count) {
    now += *rc::gen::inRange(0, 6);
    jobs.push_back(job(now, *rc::gen::inRange(0, 20), *rc::gen::inRange(1, most_gpus + 1)));
    jobs.back().priority = *rc::gen::inRange(0, 3);
    jobs.back().virtual_cluster = *rc::gen::inRange(-1, 3);
    jobs.back().quota = std::array{1.0, 0.5, 3.0, 1.0}[static_cast<std::size_t>(jobs.back().virtual_cluster + 1)];
    jobs.back().deadline_seconds = now + *rc::gen::inRange(1, 60);
    jobs.back().budget = cost(jobs.back()) * *rc::gen::element(0.5, 1.0, 2.0, kNever, kNever);
    if (std::isnan(jobs.back().budget)) jobs.back().budget = 0;
  }
  return jobs;
}

inline std::vector<ClusterJob> poisson_jobs(double rate, std::uint64_t seed, int count,
                                            const std::function<double(RandomStream&)>& service) {
  RandomStream random(mix_key(std::array{std::uint64_t{77}, seed}));
  std::vector<ClusterJob> jobs;
  double now = 0;
  for (int i = 0; i < count; ++i) {
    now -= std::log(1 - random.next_uniform()) / rate;
    jobs.push_back(job(now, service(random)));
  }
  return jobs;
}

/// Over seeds, the mean lies within three standard errors of theory.
inline void expect_mean(const std::function<double(std::uint64_t seed)>& sample, double theory) {
  constexpr int kSeeds = 20;
  double sum = 0, squares = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const double value = sample(seed);
    sum += value;
    squares += value * value;
  }
  const double mean = sum / kSeeds, deviation = std::sqrt((squares / kSeeds - mean * mean) / (kSeeds - 1));
  EXPECT_NEAR(mean, theory, 3 * deviation);
  EXPECT_LT(deviation, 0.1 * theory) << "the samples say little";
}

}  // namespace braid::sim::testing

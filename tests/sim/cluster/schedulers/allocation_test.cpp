#include "sim/cluster/schedulers/allocation.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace braid::sim {
namespace {

using Options = std::vector<std::vector<GpuOption>>;

double pace_of(const std::vector<GpuOption>& options, std::int32_t gpus) {
  for (const GpuOption& option : options) {
    if (option.gpus == gpus) return option.pace;
  }
  return 0;
}

double total(const Options& jobs, const std::vector<std::int32_t>& given) {
  double sum = 0;
  for (std::size_t j = 0; j < jobs.size(); ++j) sum += pace_of(jobs[j], given[j]);
  return sum;
}

/// Of all ways to give GPUs.
double best(std::int64_t gpus, const Options& jobs, std::size_t from = 0) {
  if (from == jobs.size()) return 0;
  double most = best(gpus, jobs, from + 1);
  for (const GpuOption& option : jobs[from]) {
    if (option.gpus <= gpus) most = std::max(most, option.pace + best(gpus - option.gpus, jobs, from + 1));
  }
  return most;
}

Options any_options(const std::vector<std::int32_t>& sizes, bool concave) {
  Options jobs(*rc::gen::inRange<std::size_t>(1, 6));
  for (auto& options : jobs) {
    std::vector<int> gains;
    for (std::size_t s = 0; s < sizes.size(); ++s) gains.push_back(*rc::gen::inRange(concave ? 1 : -5, 20));
    if (concave) std::sort(gains.rbegin(), gains.rend());
    double pace = 0;
    for (std::size_t s = 0; s < sizes.size(); ++s) {
      pace = std::max(0.0, pace + gains[s]);
      if (pace > 0) options.push_back({sizes[s], pace});
    }
  }
  return jobs;
}

RC_GTEST_PROP(Allocation, IsTheBestWhereEachGpuAddsLess, ()) {
  const Options jobs = any_options({1, 2, 3, 4, 5}, true);
  const std::int64_t gpus = *rc::gen::inRange(0, 20);
  const std::vector<std::int32_t> given = allocate(gpus, jobs);
  RC_ASSERT(std::accumulate(given.begin(), given.end(), 0) <= gpus);
  RC_ASSERT(total(jobs, given) == best(gpus, jobs));
}

RC_GTEST_PROP(Allocation, MissesTheBestByLessThanOneJobsPace, ()) {
  const Options jobs = any_options({1, 2, 4, 8}, false);
  const std::int64_t gpus = *rc::gen::inRange(0, 30);
  const std::vector<std::int32_t> given = allocate(gpus, jobs);
  double largest = 0;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    RC_ASSERT(given[j] == 0 || pace_of(jobs[j], given[j]) > 0);
    for (const GpuOption& option : jobs[j]) largest = std::max(largest, option.pace);
  }
  RC_ASSERT(std::accumulate(given.begin(), given.end(), 0) <= gpus);
  RC_ASSERT(total(jobs, given) <= best(gpus, jobs));
  RC_ASSERT(total(jobs, given) >= best(gpus, jobs) - largest);
}

TEST(Allocation, EveryoneGetsSomethingBeforeAnyoneGetsMore) {
  const Options alike(5, {{1, 1}, {2, 1.8}, {4, 3}});
  EXPECT_EQ(allocate(3, alike), (std::vector<std::int32_t>{1, 1, 1, 0, 0}));
  EXPECT_EQ(allocate(7, alike), (std::vector<std::int32_t>{2, 2, 1, 1, 1}));
  EXPECT_EQ(allocate(100, alike), (std::vector<std::int32_t>{4, 4, 4, 4, 4}));
}

}  // namespace
}  // namespace braid::sim

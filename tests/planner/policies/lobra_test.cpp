#include <bit>

#include <gtest/gtest.h>

#include "base/random.h"
#include "planner/policies/registry.h"
#include "planner/studies.h"

namespace braid::planner {
namespace {

/// Tasks of few long samples each step, drawn as their lengths say.
testing::Study long_tails(std::uint64_t seed, std::int64_t tasks, std::int64_t gpus) {
  RandomStream random(seed);
  std::vector<testing::StudyTask> kinds;
  for (std::int64_t t = 0; t < tasks; ++t)
    kinds.push_back(
        {std::int64_t{1024} << random.next_below(4), std::int64_t{4} << random.next_below(3), 12, 16, false});
  testing::Study study = testing::make_study(kinds, gpus / 4, 4, 22);
  std::vector<std::vector<workload::SampleSize>> sizes;
  for (workload::Task& task : study.workload.tasks) {
    task.lengths->mean = static_cast<double>(task.max_length) / 5;
    task.lengths->sigma = 1;
    sizes.push_back(workload::sample_sizes(task));
  }
  study.samples = {study.workload.tasks, std::move(sizes)};
  return study;
}

/// Replicas may be unlike, and need not be: nothing is lost by asking for more.
TEST(Lobra, IsNoSlowerThanReplicasAllAlike) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const testing::Study study = long_tails(seed, 1 + static_cast<std::int64_t>(seed % 3), 8);
    const double fused = make_plan(study.input(), parse_policy("task-fused")).predicted.step_seconds;
    const double lobra = make_plan(study.input(), parse_policy("lobra")).predicted.step_seconds;
    EXPECT_LE(lobra, fused) << seed;
  }
}

TEST(Lobra, DoubledCapacitiesArePowersOfTwoIntervals) {
  const testing::Study study = long_tails(3, 2, 8);
  for (const char* policy : {"lobra:capacity=doubled:interval=256", "task-fused:capacity=doubled:interval=256"}) {
    const Plan plan = make_plan(study.input(), parse_policy(policy));
    ASSERT_TRUE(plan.fixed.dispatch);
    for (const ReplicaSpeed& speed : plan.fixed.dispatch->speeds) {
      // Of a row of an interval each: as many whole rows as that many tokens have are had at every length.
      const std::int64_t most = speed.full.front().rows;
      EXPECT_TRUE(std::has_single_bit(static_cast<std::uint64_t>(most))) << most;
      for (std::size_t interval = 0; interval < speed.full.size(); ++interval)
        EXPECT_EQ(speed.full[interval].rows, std::max<std::int64_t>(1, most / static_cast<std::int64_t>(interval + 1)));
    }
  }
}

}  // namespace
}  // namespace braid::planner

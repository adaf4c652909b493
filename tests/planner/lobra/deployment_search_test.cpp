#include "planner/lobra/deployment_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace braid::planner {
namespace {

struct DrawnCluster {
  std::vector<Configuration> configurations;
  ExpectedLoad load;
  std::int64_t gpus = 8;
};

/// More GPUs a replica hold longer sequences and are at a growing loss with shorter ones, as on real machines.
DrawnCluster any_cluster(int most_gpus) {
  DrawnCluster drawn;
  drawn.gpus = *rc::gen::inRange<std::int64_t>(2, most_gpus + 1);
  const int intervals = *rc::gen::inRange(2, 10);
  for (int i = 0; i < intervals; ++i) drawn.load.push_back(*rc::gen::inRange(0, 200) * std::exp(-0.5 * i));
  drawn.load.back() += 1;
  double loss = 1;
  for (std::int64_t gpus = 1; gpus <= drawn.gpus; gpus *= 2) {
    Configuration one;
    one.gpus = gpus;
    one.speed.stages = *rc::gen::element(1, 1, 2);
    const bool holds_all = 2 * gpus > drawn.gpus;
    const int held = holds_all ? intervals : *rc::gen::inRange(1, intervals + 1);
    for (int i = 0; i < held; ++i) {
      const std::int64_t rows = std::max(1, held / (i + 1));
      const double seconds = static_cast<double>(rows) * (i + 1) * (1 + 0.05 * i) * (1 + loss / (i + 1));
      one.speed.full.push_back({rows, seconds / static_cast<double>(gpus)});
    }
    loss *= 1 + 0.01 * *rc::gen::inRange(5, 60);
    drawn.configurations.push_back(std::move(one));
  }
  return drawn;
}

/// The fastest fractional dispatch by the dual: no weights of replicas give more.
double dual_bound(const DrawnCluster& drawn, std::span<const std::int64_t> replicas) {
  std::vector<ReplicaSpeed> speeds;
  for (std::size_t c = 0; c < replicas.size(); ++c) {
    for (std::int64_t count = 0; count < replicas[c]; ++count) speeds.push_back(drawn.configurations[c].speed);
  }
  constexpr double kScale = 1000;  // whole sequences, so many times as many
  std::vector<RangeLoad> ranges;
  for (std::size_t i = 0; i < drawn.load.size(); ++i) ranges.push_back({i, std::llround(kScale * drawn.load[i])});
  return dispatch_balanced(speeds, ranges).bound / kScale;
}

RC_GTEST_PROP(DeploymentSearch, FindsTheBestOfAllPartitions, ()) {
  const DrawnCluster drawn = any_cluster(16);
  const FoundDeployments found = find_deployments(drawn.configurations, drawn.gpus, {drawn.load}, 3, 1'000'000);
  RC_ASSERT(!found.best.empty());
  RC_ASSERT(!found.truncated);
  RC_ASSERT(found.bound <= found.best.front().seconds * (1 + 1e-9));
  // Every partition, also with GPUs left over.
  double least = std::numeric_limits<double>::infinity();
  std::vector<std::int64_t> replicas(drawn.configurations.size(), 0);
  const std::function<void(std::size_t, std::int64_t)> all = [&](std::size_t next, std::int64_t gpus) {
    if (next == replicas.size()) {
      least = std::min(least, expected_seconds(drawn.configurations, replicas, {drawn.load}));
      return;
    }
    for (replicas[next] = 0; replicas[next] * drawn.configurations[next].gpus <= gpus; ++replicas[next])
      all(next + 1, gpus - replicas[next] * drawn.configurations[next].gpus);
    replicas[next] = 0;
  };
  all(0, drawn.gpus);
  RC_ASSERT(std::abs(found.best.front().seconds - least) <= 1e-9 * least);
}

RC_GTEST_PROP(DeploymentSearch, ExpectsNoLessThanTheFractionalBound, ()) {
  const DrawnCluster drawn = any_cluster(16);
  const FoundDeployments found = find_deployments(drawn.configurations, drawn.gpus, {drawn.load}, 1, 1'000'000);
  const double bound = dual_bound(drawn, found.best.front().replicas);
  RC_ASSERT(found.best.front().seconds >= bound * (1 - 1e-2));
}

RC_GTEST_PROP(DeploymentSearch, WhatIsNotWorthDeployingIsMissedByNobody, ()) {
  DrawnCluster drawn = any_cluster(16);
  const double before =
      find_deployments(drawn.configurations, drawn.gpus, {drawn.load}, 1, 1'000'000).best.front().seconds;
  // Slower copies, some of which hold less.
  const std::size_t count = drawn.configurations.size();
  for (std::size_t c = 0; c < count; ++c) {
    Configuration slower = drawn.configurations[c];
    for (ReplicaSpeed::Full& full : slower.speed.full) full.seconds *= 1 + 0.01 * *rc::gen::inRange(0, 50);
    if (*rc::gen::arbitrary<bool>()) slower.speed.full.resize(slower.speed.full.size() / 2);
    drawn.configurations.insert(drawn.configurations.begin() + static_cast<std::ptrdiff_t>(c), std::move(slower));
  }
  std::vector<Configuration> worth;
  for (const std::size_t place : worth_deploying(drawn.configurations, drawn.gpus, {drawn.load}))
    worth.push_back(drawn.configurations[place]);
  RC_ASSERT(worth.size() <= count);
  const double after = find_deployments(worth, drawn.gpus, {drawn.load}, 1, 1'000'000).best.front().seconds;
  RC_ASSERT(std::abs(after - before) <= 1e-9 * before);
}

TEST(DeploymentSearch, SaysWhereItLookedAtSomeAlone) {
  Configuration one{1, {{{1, 1.0}}, 1}}, two{2, {{{1, 0.6}}, 1}};
  const std::vector<Configuration> configurations = {one, two};
  const FoundDeployments found = find_deployments(configurations, 64, {{100.0}}, 2, 10);
  EXPECT_TRUE(found.truncated);
  EXPECT_GE(found.looked_at, 10);
  // One of the 33 is best, which a climb finds.
  EXPECT_EQ(found.best.front().replicas, find_deployments(configurations, 64, {{100.0}}, 2, 1000).best.front().replicas);
}

}  // namespace
}  // namespace braid::planner

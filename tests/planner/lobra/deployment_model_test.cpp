#include "planner/lobra/deployment_model.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "base/random.h"

namespace braid::planner {
namespace {

struct ModelledCluster {
  std::vector<Configuration> configurations;
  ExpectedLoads loads;
  std::int64_t gpus = 8;
};

/// More GPUs a replica hold longer sequences and are at a loss with shorter ones, as on real machines.
ModelledCluster modelled_cluster(std::uint64_t seed) {
  RandomStream random(seed);
  ModelledCluster drawn;
  drawn.gpus = std::int64_t{8} << random.next_below(3);
  const std::size_t intervals = 3 + random.next_below(6), loads = 1 + random.next_below(2);
  for (std::size_t l = 0; l < loads; ++l) {
    ExpectedLoad& load = drawn.loads.emplace_back();
    for (std::size_t i = 0; i < intervals; ++i)
      load.push_back(static_cast<double>(random.next_below(200)) * std::exp(-0.5 * static_cast<double>(i)));
    load.back() += 1;
  }
  double loss = 1;
  for (std::int64_t gpus = 1; gpus <= 8; gpus *= 2) {
    Configuration one;
    one.gpus = gpus;
    one.speed.stages = random.next_below(3) == 0 ? 2 : 1;
    const std::size_t held = gpus == 8 ? intervals : 1 + random.next_below(intervals);
    for (std::size_t i = 0; i < held; ++i) {
      const auto place = static_cast<double>(i);
      const auto rows = static_cast<std::int64_t>(std::max<std::size_t>(1, held / (i + 1)));
      const double seconds = static_cast<double>(rows) * (place + 1) * (1 + 0.05 * place) * (1 + loss / (place + 1));
      one.speed.full.push_back({rows, seconds / static_cast<double>(gpus)});
    }
    loss *= 1.05 + 0.5 * random.next_uniform();
    drawn.configurations.push_back(std::move(one));
  }
  return drawn;
}

/// Of all numbers of replicas that leave no GPU for another.
double best_of_all(const ModelledCluster& drawn, std::vector<std::int64_t>& replicas, std::size_t next,
                   std::int64_t gpus) {
  if (next == drawn.configurations.size()) {
    if (gpus > 0) return milp::kInfinity;
    return fractional_dispatch(drawn.configurations, drawn.gpus, replicas, drawn.loads).seconds;
  }
  double best = milp::kInfinity;
  for (std::int64_t count = 0; count * drawn.configurations[next].gpus <= gpus; ++count) {
    replicas[next] = count;
    best = std::min(best, best_of_all(drawn, replicas, next + 1, gpus - count * drawn.configurations[next].gpus));
  }
  replicas[next] = 0;
  return best;
}

TEST(DeploymentModel, HasTheBestOfAllDeployments) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    ModelledCluster drawn = modelled_cluster(seed);
    drawn.gpus = 8;
    std::vector<std::int64_t> replicas(drawn.configurations.size(), 0);
    const double best = best_of_all(drawn, replicas, 0, drawn.gpus);
    const milp::Model model = deployment_model(drawn.configurations, drawn.gpus, drawn.loads, 2 * best);
    const milp::Solution solved = milp::solve(model, {});
    ASSERT_EQ(solved.ended, milp::Ended::proven);
    EXPECT_NEAR(solved.cost, best, 1e-6 * best);
    const DeploymentChoice choice = deployment_of(solved.values, drawn.configurations, drawn.gpus, model);
    EXPECT_NEAR(fractional_dispatch(drawn.configurations, drawn.gpus, choice.replicas, drawn.loads).seconds, best,
                1e-6 * best);
  }
}

/// The search dispatches longest first, which is not always the fastest, but nearly.
TEST(DeploymentModel, TheSearchIsNeverBelowItAndHardlyAbove) {
  constexpr int kClusters = 24;
  double sum = 0;
  int same = 0;
  for (std::uint64_t seed = 1; seed <= kClusters; ++seed) {
    const ModelledCluster drawn = modelled_cluster(seed);
    const FoundDeployments found = find_deployments(drawn.configurations, drawn.gpus, drawn.loads, 12, 1'000'000);
    const DeploymentChoice& first = found.best.front();
    const FractionalDispatch exact = fractional_dispatch(drawn.configurations, drawn.gpus, first.replicas, drawn.loads);
    EXPECT_LE(exact.seconds, first.seconds * (1 + 1e-6));
    const milp::Model model = deployment_model(drawn.configurations, drawn.gpus, drawn.loads, first.seconds);
    const milp::Solution solved = milp::solve(model, {2000, 120, 1e-4}, exact.values);
    ASSERT_EQ(solved.ended, milp::Ended::proven) << seed;
    EXPECT_LE(found.bound, solved.cost * (1 + 1e-6));
    EXPECT_LE(solved.cost, exact.seconds * (1 + 1e-6));
    EXPECT_LE(exact.seconds, 1.01 * solved.cost) << seed;
    sum += first.seconds / solved.cost;
    if (exact.seconds <= solved.cost * (1 + 1e-4)) ++same;
  }
  EXPECT_LE(sum / kClusters, 1.001);
  EXPECT_GE(same, kClusters - 2);
}

}  // namespace
}  // namespace braid::planner

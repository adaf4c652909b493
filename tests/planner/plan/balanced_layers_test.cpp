#include "planner/plan/balanced_layers.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "base/random.h"
#include "planner/plan/task_load.h"
#include "planner/studies.h"

namespace braid::planner {
namespace {

double slowest(std::span<const std::int64_t> layers, const StageCosts& costs) {
  double most = 0;
  for (std::size_t s = 0; s < layers.size(); ++s) {
    const double beside = (s == 0 ? costs.first : 0) + (s + 1 == layers.size() ? costs.last : 0);
    most = std::max(most, static_cast<double>(layers[s]) * costs.layer + beside);
  }
  return most;
}

/// Of every split with a layer or more on each stage.
double least_slowest(std::vector<std::int64_t>& chosen, std::int64_t left, std::int64_t stages,
                     const StageCosts& costs) {
  if (stages == 1) {
    chosen.push_back(left);
    const double here = slowest(chosen, costs);
    chosen.pop_back();
    return here;
  }
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t here = 1; here <= left - (stages - 1); ++here) {
    chosen.push_back(here);
    least = std::min(least, least_slowest(chosen, left - here, stages - 1, costs));
    chosen.pop_back();
  }
  return least;
}

TEST(BalancedLayers, NoSplitHasAFasterSlowestStage) {
  RandomStream random(20261125);
  const auto unit = [&] { return static_cast<double>(random.next_below(1000)) / 100; };
  for (int i = 0; i < 400; ++i) {
    const auto stages = static_cast<std::int64_t>(1 + random.next_below(4));
    const auto layers = stages + static_cast<std::int64_t>(random.next_below(9));
    // The bottom layer goes no way back to the embedding: what the first stage does beside its layers may be less than
    // nothing.
    const StageCosts costs{0.1 + unit(), unit() - 2, unit() * 3};
    const std::vector<std::int64_t> split = balanced_layers(layers, stages, costs);
    EXPECT_EQ(std::accumulate(split.begin(), split.end(), std::int64_t{0}), layers);
    EXPECT_GE(*std::min_element(split.begin(), split.end()), 1);
    std::vector<std::int64_t> chosen;
    EXPECT_DOUBLE_EQ(slowest(split, costs), least_slowest(chosen, layers, stages, costs));
  }
}

TEST(BalancedLayers, OfStagesAlikeAreEven) {
  for (std::int64_t layers = 1; layers <= 12; ++layers) {
    for (std::int64_t stages = 1; stages <= layers; ++stages)
      EXPECT_EQ(layer_ranges(balanced_layers(layers, stages, {1, 0, 0})), even_layers(layers, stages));
  }
}

/// Stages cost what they are charged for: so many layers, and what the ends do beside them.
TEST(BalancedLayers, CostsOfStagesAddUp) {
  const testing::Study study = testing::make_study({{64}, {256, 8, 9, 16}}, 1, 4, 8);
  ClockLatency latency(study.cost, study.workload.backbone);
  const std::vector<ReplicaShape> deployment = deploy(8, 1, 4, 1);
  const OptionValues options;
  const PolicyInput input{study.workload, study.samples, latency, 0, deployment, 2, options};
  const StageCosts costs = stage_costs(input);
  EXPECT_GT(costs.layer, 0);
  EXPECT_GT(costs.last, costs.layer) << "32,000 words are more than a layer of TinyLlama";
  const auto seconds = [&](const costmodel::StageShape& stage) {
    double sum = 0;
    for (TaskIndex task = 0; task < 2; ++task) {
      const costmodel::MicrobatchLoad load =
          task_load(input, task, Padding::max_length, costmodel::AdapterKernels::separate);
      for (const costmodel::Pass pass : {costmodel::Pass::forward, costmodel::Pass::backward})
        sum += latency.alone(stage, std::vector<std::int32_t>{0}, load, pass).total.seconds;
    }
    return sum;
  };
  const double one = seconds({1, false, false, 1});
  EXPECT_NEAR(seconds({5, false, false, 1}), one + 4 * costs.layer, 1e-9);
  EXPECT_NEAR(seconds({5, true, false, 1}), one + 4 * costs.layer + costs.first, 1e-9);
  EXPECT_NEAR(seconds({3, false, true, 1}), one + 2 * costs.layer + costs.last, 1e-9);
}

}  // namespace
}  // namespace braid::planner

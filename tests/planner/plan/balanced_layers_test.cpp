#include "planner/plan/balanced_layers.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "base/random.h"
#include "planner/plan/task_load.h"
#include "planner/studies.h"

namespace braid::planner {
namespace {

using Judged = std::function<double(std::span<const std::int64_t>)>;

double slowest(std::span<const std::int64_t> layers, const StageCosts& costs) {
  double most = -std::numeric_limits<double>::infinity();
  for (std::size_t s = 0; s < layers.size(); ++s) {
    const double beside = (s == 0 ? costs.first : 0) + (s + 1 == layers.size() ? costs.last : 0);
    most = std::max(most, static_cast<double>(layers[s]) * costs.layer + beside);
  }
  return most;
}

/// Of every split with a layer or more on each stage.
double least_of_all(std::vector<std::int64_t>& chosen, std::int64_t left, std::int64_t stages, const Judged& judged) {
  if (stages == 1) {
    chosen.push_back(left);
    const double here = judged(chosen);
    chosen.pop_back();
    return here;
  }
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t here = 1; here <= left - (stages - 1); ++here) {
    chosen.push_back(here);
    least = std::min(least, least_of_all(chosen, left - here, stages - 1, judged));
    chosen.pop_back();
  }
  return least;
}

/// So many layers, one or more a stage, and none judged better.
void expect_best(std::span<const std::int64_t> split, std::int64_t layers, std::int64_t stages, const Judged& judged) {
  EXPECT_EQ(static_cast<std::int64_t>(split.size()), stages);
  EXPECT_EQ(std::accumulate(split.begin(), split.end(), std::int64_t{0}), layers);
  EXPECT_GE(*std::min_element(split.begin(), split.end()), 1);
  std::vector<std::int64_t> chosen;
  EXPECT_DOUBLE_EQ(judged(split), least_of_all(chosen, layers, stages, judged));
}

TEST(BalancedLayers, NoSplitHasAFasterSlowestStage) {
  RandomStream random(20261125);
  const auto unit = [&] { return static_cast<double>(random.next_below(1000)) / 100; };
  int apart = 0;
  for (int i = 0; i < 400; ++i) {
    const auto stages = static_cast<std::int64_t>(1 + random.next_below(4));
    const auto layers = stages + static_cast<std::int64_t>(random.next_below(9));
    // The bottom layer goes no way back to the embedding: what the first stage does beside its layers may be less than
    // nothing.
    const PassCosts costs{{0.1 + unit(), unit(), unit() * 3}, {0.1 + unit(), unit() - 2, unit()}};
    const StageCosts both = costs.forward + costs.backward;
    const Judged by_stage = [&](std::span<const std::int64_t> split) { return slowest(split, both); };
    const Judged by_pass = [&](std::span<const std::int64_t> split) {
      return slowest(split, costs.forward) + slowest(split, costs.backward);
    };
    const std::vector<std::int64_t> split = balanced_layers(layers, stages, both);
    expect_best(split, layers, stages, by_stage);
    const std::vector<std::int64_t> passes = balanced_passes(layers, stages, costs);
    expect_best(passes, layers, stages, by_pass);
    if (by_pass(split) > by_pass(passes)) ++apart;
  }
  EXPECT_GT(apart, 40) << "what balances a stage seldom balances each pass";
}

TEST(BalancedLayers, OfStagesAlikeAreEven) {
  for (std::int64_t layers = 1; layers <= 12; ++layers) {
    for (std::int64_t stages = 1; stages <= layers; ++stages) {
      EXPECT_EQ(layer_ranges(balanced_layers(layers, stages, {1, 0, 0})), even_layers(layers, stages));
      EXPECT_EQ(layer_ranges(balanced_passes(layers, stages, {{1, 0, 0}, {2, 0, 0}})), even_layers(layers, stages));
    }
  }
}

/// Stages cost what they are charged for: so many layers, and what the ends do beside them.
TEST(BalancedLayers, CostsOfStagesAddUp) {
  const testing::Study study = testing::make_study({{64}, {256, 8, 9, 16}}, 1, 4, 8);
  ClockLatency latency(study.cost, study.workload.backbone);
  const std::vector<ReplicaShape> deployment = deploy(8, 1, 4, 1);
  const OptionValues options;
  const PolicyInput input{study.workload, study.samples, latency, 0, deployment, 2, options};
  const PassCosts costs = pass_costs(input);
  EXPECT_GT(costs.forward.last, costs.forward.layer) << "32,000 words are more than a layer of TinyLlama";
  for (const costmodel::Pass pass : {costmodel::Pass::forward, costmodel::Pass::backward}) {
    const StageCosts& of = pass == costmodel::Pass::forward ? costs.forward : costs.backward;
    EXPECT_GT(of.layer, 0);
    const auto seconds = [&](const costmodel::StageShape& stage) {
      double sum = 0;
      for (TaskIndex task = 0; task < 2; ++task) {
        const costmodel::MicrobatchLoad load =
            task_load(input, task, Padding::max_length, costmodel::AdapterKernels::separate);
        sum += latency.alone(stage, std::vector<std::int32_t>{0}, load, pass).total.seconds;
      }
      return sum;
    };
    const double one = seconds({1, false, false, 1});
    EXPECT_NEAR(seconds({5, false, false, 1}), one + 4 * of.layer, 1e-9);
    EXPECT_NEAR(seconds({5, true, false, 1}), one + 4 * of.layer + of.first, 1e-9);
    EXPECT_NEAR(seconds({3, false, true, 1}), one + 2 * of.layer + of.last, 1e-9);
  }
}

}  // namespace
}  // namespace braid::planner

#include <algorithm>

#include <gtest/gtest.h>

#include "base/random.h"
#include "planner/policies/registry.h"
#include "planner/search/plan_search.h"
#include "planner/studies.h"

namespace braid::planner {
namespace {

using testing::make_study;
using testing::Study;
using testing::StudyTask;

std::vector<StudyTask> any_tasks(RandomStream& random) {
  std::vector<StudyTask> tasks;
  for (std::uint64_t count = 2 + random.next_below(5); count > 0; --count)
    tasks.push_back({64LL << random.next_below(4), 2LL << random.next_below(4), 20, 16, false});
  return tasks;
}

/// The fastest plan whose deployment and microbatches are given, of all that there are; the rest replicates.
double fastest_of_fixed(const Study& study, const PolicyChoice& choice, std::int64_t gpus) {
  double fastest = std::numeric_limits<double>::infinity();
  for (std::int64_t tp = 1; tp <= std::min<std::int64_t>(gpus, 4); tp *= 2) {
    for (std::int64_t pp = 1; tp * pp <= gpus; pp *= 2) {
      for (std::int64_t microbatches = 1; microbatches <= 16; microbatches *= 2) {
        try {
          const Plan plan = make_plan(study.input({.tp = tp, .pp = pp, .microbatches = microbatches}), choice);
          fastest = std::min(fastest, plan.predicted.step_seconds);
        } catch (const Error&) {  // more microbatches than samples, or it does not fit
        }
      }
    }
  }
  return fastest;
}

/// MuxTune's sketches know nothing of the samples: they must still lead to where the fastest plans are.
TEST(Search, FindsAboutTheFastestDeployment) {
  RandomStream random(20260101);
  const PolicyChoice choice = parse_policy("muxtune");
  double sum = 0, worst = 0;
  constexpr int kWorkloads = 6;
  for (int i = 0; i < kWorkloads; ++i) {
    const std::int64_t nodes = 1LL << random.next_below(2), gpus = 4;
    const Study study = make_study(any_tasks(random), nodes, gpus, 32);
    const double free = make_plan(study.input(), choice).predicted.step_seconds;
    const double slower = free / fastest_of_fixed(study, choice, nodes * gpus) - 1;
    sum += slower;
    worst = std::max(worst, slower);
  }
  RecordProperty("mean_percent", fmt::format("{:.2f}", 100 * sum / kWorkloads));
  RecordProperty("worst_percent", fmt::format("{:.2f}", 100 * worst));
  EXPECT_LT(sum / kWorkloads, 0.01);
  EXPECT_LT(worst, 0.03);
}

/// Between nodes of one GPU, over a slow network: fewer stages are often faster than all, and other numbers of
/// microbatches than powers of two.
TEST(Search, SystemsOfStagesFindTheFastestOnSlowLinks) {
  RandomStream random(20260102);
  double sum = 0, worst = 0;
  int searches = 0, idle = 0;
  for (int i = 0; i < 6; ++i) {
    Study study = make_study(any_tasks(random), 4, 1, 16);
    costmodel::Profile profile = study.cost.profile();
    study.cluster.inter_node = costmodel::named_link("eth-1g", costmodel::device_of("a40"));
    profile.interconnect = study.cluster.interconnect();
    const Study slow{study.workload, study.cluster, study.samples, costmodel::CostModel(profile)};
    for (const char* policy : {"megatron-pp", "gpipe", "mlora"}) {
      const PolicyChoice choice = parse_policy(policy);
      const Plan found = make_plan(slow.input(), choice);
      double fastest = found.predicted.step_seconds;
      for (std::int64_t pp = 1; pp <= 4; ++pp) {
        for (std::int64_t microbatches = 1; microbatches <= 16; ++microbatches) {
          try {
            const Plan plan = make_plan(slow.input({.tp = 1, .pp = pp, .microbatches = microbatches}), choice);
            fastest = std::min(fastest, plan.predicted.step_seconds);
            EXPECT_LE(found.lower_bound.step_seconds, plan.predicted.step_seconds) << policy << " on " << pp;
          } catch (const Error&) {  // more microbatches than samples
          }
        }
      }
      const double slower = found.predicted.step_seconds / fastest - 1;
      sum += slower;
      worst = std::max(worst, slower);
      ++searches;
      if (found.fixed.ranks() < 4) ++idle;
    }
  }
  RecordProperty("mean_percent", fmt::format("{:.2f}", 100 * sum / searches));
  RecordProperty("worst_percent", fmt::format("{:.2f}", 100 * worst));
  EXPECT_GT(idle, 0);
  EXPECT_LT(sum / searches, 0.005);
  EXPECT_LT(worst, 0.02);
}

TEST(Search, WhatFitsOnlyWhenArrangedAnewHidesNothingFasterBehindIt) {
  // 13B in int8 on 48 GB: a few numbers of microbatches of two tasks fit at a glance and in full only one by one.
  Study study = make_study({{512, 8}, {512, 8}, {512, 8}, {512, 8}}, 1, 1, 40, "a6000");
  study.workload.backbone = costmodel::builtin_backbone("llama2-13b");
  for (workload::Task& task : study.workload.tasks) task.adapter.rank = 16;
  costmodel::Profile profile = costmodel::analytic_profile("a6000", costmodel::DataType::int8);
  profile.interconnect = study.cluster.interconnect();
  std::vector<std::vector<workload::SampleSize>> sizes;
  for (workload::Task& task : study.workload.tasks) {
    task.name = "gsm8k" + std::to_string(task.seed);
    task.lengths = workload::LengthDistribution{.mean = 200, .sigma = 0.4, .max = 512};
    sizes.push_back(workload::sample_sizes(task));
  }
  const Study tight{study.workload, study.cluster, workload::SampleIndex(study.workload.tasks, sizes),
                    costmodel::CostModel(profile)};
  const PolicyChoice mlora = parse_policy("mlora");
  const double found = make_plan(tight.input(), mlora).predicted.step_seconds;
  for (const std::int64_t microbatches : {1, 2, 3, 4, 5, 6, 7, 8}) {
    try {
      const Overrides fixed{.tp = {}, .pp = {}, .microbatches = microbatches};
      EXPECT_LE(found, make_plan(tight.input(fixed), mlora).predicted.step_seconds) << microbatches;
    } catch (const Error&) {  // it does not fit
    }
  }
}

/// Whatever else there is to choose from. What the balanced splits' own search leaves out beside the even one's plan
/// was no faster.
TEST(Search, BalancedLayersAreNeverSlower) {
  RandomStream random(20261125);
  int searched = 0;
  for (int i = 0; i < 6; ++i) {
    Study study = make_study(any_tasks(random), 1, 4, 8 + static_cast<std::int64_t>(random.next_below(24)));
    study.workload.backbone.vocabulary = 8000LL << random.next_below(5);
    for (const char* policy :
         {"gpipe", "megatron-pp:pad_to=none", "mlora", "nemo", "muxtune:alignment=packed:pad_to=none"}) {
      const PolicyChoice choice = parse_policy(policy);
      const Overrides balanced{.tp = {}, .pp = {}, .microbatches = {}, .split = {LayerSplit::Kind::balanced}};
      const double even = make_plan(study.input(), choice).predicted.step_seconds;
      const double found = make_plan(study.input(balanced), choice).predicted.step_seconds;
      EXPECT_LE(found, even) << policy << " " << i;
      const PlanningInput alone = study.input(balanced);
      const std::optional<Candidate> whole = PlanSearch(alone, choice).fastest();
      if (!whole) continue;
      ++searched;
      EXPECT_EQ(found, std::min(even, whole->prediction.step_seconds)) << policy << " " << i;
    }
  }
  EXPECT_GT(searched, 15);
}

/// With Llama-3's vocabulary the head is as much as six of TinyLlama's layers. It is a Forward's alone, with the loss
/// and its gradient, so that GPipe, whose Backwards wait for all Forwards, gains less.
TEST(Search, BalancedLayersAreFasterWhereTheHeadIsLargeAndNeverSlower) {
  for (const auto& [policy, most] : {std::pair("megatron-pp", 0.87), std::pair("gpipe", 0.95), std::pair("mlora", 0.87),
                                     std::pair("muxtune", 0.87), std::pair("nemo:schedule=1f1b", 0.87)}) {
    const PolicyChoice choice = parse_policy(policy);
    for (const std::int64_t vocabulary : {1000, 128256}) {
      Study study = make_study({{64, 8}, {256, 16}}, 1, 4, 32);
      study.workload.backbone.vocabulary = vocabulary;
      const auto planned = [&](LayerSplit split) {
        return make_plan(study.input({.tp = 1, .pp = 4, .microbatches = {}, .split = std::move(split)}), choice);
      };
      const Plan even = planned({}), balanced = planned({LayerSplit::Kind::balanced});
      const double share = balanced.predicted.step_seconds / even.predicted.step_seconds;
      EXPECT_LE(share, vocabulary == 1000 ? 1 : most) << policy;
      EXPECT_LE(balanced.lower_bound.step_seconds, even.lower_bound.step_seconds) << policy;
      if (vocabulary == 1000) continue;
      RecordProperty(policy, fmt::format("{:.1f} % less", 100 * (1 - share)));
      const std::vector<LayerRange>& split = balanced.fixed.deployment.front().layers;
      EXPECT_LT(split.back().count(), split.front().count()) << policy;
      // What was found can be asked for.
      LayerSplit given{LayerSplit::Kind::given};
      for (const LayerRange& range : split) given.layers.push_back(range.count());
      EXPECT_EQ(planned(given).fixed.deployment, balanced.fixed.deployment) << policy;
    }
  }
}

/// Whatever the search leaves out as too slow, where a deployment that is asked for fits memory there is a plan.
TEST(Search, FindsAPlanWhereThereIsOne) {
  RandomStream random(20260103);
  int tight = 0;
  for (int i = 0; i < 6; ++i) {
    const Study study = make_study(any_tasks(random), 1, 4, 16);
    for (const char* name : {"megatron-pp", "gpipe", "mlora"}) {
      const PolicyChoice choice = parse_policy(name);
      const Plan roomy = make_plan(study.input(), choice);
      for (const Bytes percent : {80, 90, 95, 98}) {
        costmodel::Profile profile = study.cost.profile();
        profile.memory_bytes = roomy.predicted.peak_memory_bytes[0] * percent / 100;
        const Study small{study.workload, study.cluster, study.samples, costmodel::CostModel(profile)};
        const auto fits = [&](const Overrides& overrides) {
          try {
            const PlanningInput input = small.input(overrides);
            return PlanSearch(input, choice).fastest().has_value();
          } catch (const Error&) {
            return false;
          }
        };
        bool any = false;
        for (std::int64_t pp = 1; pp <= 4; ++pp) {
          for (std::int64_t microbatches = 1; microbatches <= 16; microbatches *= 2)
            any = any || fits({.tp = {}, .pp = pp, .microbatches = microbatches});
        }
        EXPECT_TRUE(!any || fits({})) << name << ", " << percent << " % of " << i;
        tight += any ? 1 : 0;
      }
    }
  }
  EXPECT_GT(tight, 10);
}

}  // namespace
}  // namespace braid::planner

#include <gtest/gtest.h>

#include "base/random.h"
#include "planner/policies/registry.h"
#include "planner/search/bench.h"
#include "planner/studies.h"
#include "support.h"

namespace braid::planner {
namespace {

using costmodel::RecomputeKind;
using testing::make_study;
using testing::Study;
using testing::with_memory;

const std::vector<std::string> kRecomputingPolicies = {"hf-peft:resident=false",
                                                       "nemo:resident=false",
                                                       "megatron-fsdp",
                                                       "megatron-pp",
                                                       "gpipe",
                                                       "sl-peft",
                                                       "mlora",
                                                       "muxtune",
                                                       "task-fused",
                                                       "lobra",
                                                       "lorafusion"};

Study any_study(RandomStream& random, std::int64_t gpus) {
  std::vector<testing::StudyTask> tasks;
  for (std::uint64_t count = 1 + random.next_below(3); count > 0; --count)
    tasks.push_back({512LL << random.next_below(3), 2LL << random.next_below(3), 20, 16, false});
  return make_study(tasks, 1, gpus, 16);
}

std::optional<Plan> plan_of(const Study& study, const std::string& policy) {
  try {
    return make_plan(study.input(), parse_policy(policy));
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// What the plan holds in full on each rank where one layer fewer is recomputed on a stage, of a replica or, where all
/// are alike, of all.
std::vector<Bytes> peaks_with_one_fewer(const Study& study, const Plan& plan, std::size_t of_replica,
                                        std::size_t stage) {
  FixedPlan fixed = plan.fixed;
  const std::vector<ReplicaShape>& deployment = plan.fixed.deployment;
  const bool like = std::count(deployment.begin(), deployment.end(), deployment.front()) == std::ssize(deployment);
  for (std::size_t r = 0; r < deployment.size(); ++r) {
    if (like || r == of_replica) --fixed.deployment[r].recompute[stage].layers;
  }
  Prediction prediction;
  Predictor(fixed, {study.workload, study.samples}, Outlook::full).memory(prediction);
  return prediction.peak_memory_bytes;
}

class Recomputation : public ::testing::TestWithParam<std::string> {};

/// Where there is room nothing is recomputed; with less and less memory more is, as long as anything fits.
TEST_P(Recomputation, IsAsLittleAsFits) {
  RandomStream random(20261127);
  int recomputing = 0;
  for (int i = 0; i < 4; ++i) {
    const Study study = any_study(random, 1LL << random.next_below(3));
    const std::optional<Plan> roomy = plan_of(study, GetParam());
    ASSERT_TRUE(roomy);
    EXPECT_FALSE(recomputes(roomy->fixed.deployment)) << describe(roomy->fixed.deployment);
    for (double share = 0.9; share > 0.1; share -= 0.2) {
      const auto most =
          *std::max_element(roomy->predicted.peak_memory_bytes.begin(), roomy->predicted.peak_memory_bytes.end());
      const Study tight = with_memory(study, static_cast<Bytes>(share * static_cast<double>(most)));
      const std::optional<Plan> plan = plan_of(tight, GetParam());
      const std::optional<Plan> none = plan_of(tight, GetParam() + ":recompute=none");
      const std::optional<Plan> full = plan_of(tight, GetParam() + ":recompute=full");
      EXPECT_EQ(plan.has_value(), none.has_value() || full.has_value()) << share;
      if (!plan) continue;
      for (const Bytes peak : plan->predicted.peak_memory_bytes) EXPECT_LE(peak, tight.cost.profile().memory_bytes);
      const double seconds = plan->predicted.step_seconds;
      for (const std::optional<Plan>& given : {none, full}) {
        if (!given) continue;
        EXPECT_LE(seconds, given->predicted.step_seconds * 1.02) << describe(plan->fixed.deployment);
        EXPECT_LE(given->lower_bound.step_seconds, given->predicted.step_seconds);
      }
      EXPECT_LE(plan->lower_bound.step_seconds, seconds);
      if (!recomputes(plan->fixed.deployment)) continue;
      ++recomputing;
      const std::vector<ReplicaShape>& deployment = plan->fixed.deployment;
      for (std::size_t r = 0; r < deployment.size(); ++r) {
        for (std::size_t s = 0; s < deployment[r].recompute.size(); ++s) {
          const costmodel::Recompute& recompute = deployment[r].recompute[s];
          if (!recompute.any()) continue;
          const bool all = recompute.layers == deployment[r].layers_of(static_cast<std::int32_t>(s));
          const bool of_layers = recompute_choice(parse_policy(GetParam()), study.cost.profile()).of_layers;
          EXPECT_TRUE(of_layers || all) << describe(deployment);
          if (!of_layers) continue;
          const std::vector<Bytes> peaks = peaks_with_one_fewer(tight, *plan, r, s);
          EXPECT_GT(*std::max_element(peaks.begin(), peaks.end()), tight.cost.profile().memory_bytes)
              << describe(deployment) << ": replica " << r << ", stage " << s << " need not";
        }
      }
    }
  }
  EXPECT_GT(recomputing, 0);
}

INSTANTIATE_TEST_SUITE_P(Policies, Recomputation, ::testing::ValuesIn(kRecomputingPolicies), [](const auto& policy) {
  std::string name;
  for (const char letter : policy.param.substr(0, policy.param.find(':'))) name += letter == '-' ? '_' : letter;
  return name;
});

Overrides two_stages() {
  Overrides overrides;
  overrides.pp = 2;
  return overrides;
}

TEST(RecomputationChoice, WhatIsGivenIsDoneToEveryLayer) {
  const Study study = make_study({{512, 4}, {256, 4}}, 1, 4);
  for (const RecomputeKind kind : {RecomputeKind::selective, RecomputeKind::full}) {
    const Plan plan =
        make_plan(study.input(two_stages()), parse_policy(fmt::format("megatron-pp:recompute={}", name(kind))));
    const ReplicaShape& replica = plan.fixed.deployment.front();
    ASSERT_EQ(replica.recompute.size(), 2U);
    for (std::int32_t s = 0; s < 2; ++s)
      EXPECT_EQ(replica.recompute_of(s), (costmodel::Recompute{kind, replica.layers_of(s)}));
  }
  EXPECT_THROW(parse_policy("hf-peft:recompute=selective"), Error);
}

TEST(RecomputationChoice, StandsInThePlansFile) {
  const TestFolder folder;
  const Study study = make_study({{512, 4}}, 1, 2);
  Plan plan = make_plan(study.input(two_stages()), parse_policy("megatron-pp"));
  EXPECT_EQ(to_json(plan).find("\"kind\": \"full\""), std::string::npos) << "plans that recompute nothing say nothing";
  plan.fixed.deployment.front().recompute = {{RecomputeKind::full, 3}, {RecomputeKind::selective, 2}};
  folder.write("plan.json", to_json(plan));
  const Plan back = read_plan(folder / "plan.json");
  EXPECT_EQ(back.fixed.deployment, plan.fixed.deployment);
  EXPECT_EQ(describe(back.fixed.deployment),
            "tp 1, pp 2, selective recomputation of 0 + 2 layers, full recomputation of 3 + 0 layers");
}

}  // namespace
}  // namespace braid::planner

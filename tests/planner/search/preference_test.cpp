#include <algorithm>

#include <gtest/gtest.h>

#include "base/random.h"
#include "planner/policies/registry.h"
#include "planner/search/plan_search.h"
#include "planner/studies.h"
#include "support.h"

namespace braid::planner {
namespace {

using testing::make_study;
using testing::Study;
using testing::StudyTask;
using testing::with_memory;

Bytes peak_of(const Plan& plan) {
  return *std::max_element(plan.predicted.peak_memory_bytes.begin(), plan.predicted.peak_memory_bytes.end());
}

Plan preferring_memory(const Study& study, const PolicyChoice& choice, const Overrides& overrides = {}) {
  PlanningInput input = study.input(overrides);
  input.preference = Preference::memory;
  return make_plan(input, choice);
}

/// Every deployment with every number of microbatches, each the fastest that the policy arranges so.
std::vector<Plan> all_plans(const Study& study, const PolicyChoice& choice, std::int64_t most_microbatches) {
  std::vector<Plan> plans;
  for (std::int64_t tp = 1; tp <= 4; tp *= 2) {
    for (std::int64_t pp = 1; pp <= 4; ++pp) {
      for (std::int64_t microbatches = 1; microbatches <= most_microbatches; ++microbatches) {
        try {
          plans.push_back(make_plan(study.input({.tp = tp, .pp = pp, .microbatches = microbatches}), choice));
        } catch (const Error&) {  // the system has no such deployment, or it does not fit
        }
      }
    }
  }
  return plans;
}

/// Batches of up to 8 samples, so that the grid and the quarters between it are all numbers of microbatches.
std::vector<StudyTask> small_tasks(RandomStream& random) {
  std::vector<StudyTask> tasks;
  for (std::uint64_t count = 1 + random.next_below(4); count > 0; --count)
    tasks.push_back({64LL << random.next_below(4), 2LL << random.next_below(3), 12, 16, false});
  return tasks;
}

class Prefer : public ::testing::TestWithParam<const char*> {};

TEST_P(Prefer, MemoryTakesTheLeastOfAllPlansThatAreNearlyAsFast) {
  RandomStream random(20261126);
  const PolicyChoice choice = parse_policy(GetParam());
  int leaner = 0;
  for (int i = 0; i < 6; ++i) {
    const Study roomy = make_study(small_tasks(random), 1, 1LL << random.next_below(3), 8);
    const Bytes fastest_peak = peak_of(make_plan(roomy.input(), choice));
    for (const Bytes percent : {1000, 100}) {
      // The tenth that stays free is more than what the fastest is then short of.
      const Study study = with_memory(roomy, fastest_peak * percent / 95);
      const Study usable = with_memory(study, usable_memory(study.cost.profile(), Preference::memory).usable);
      std::optional<Plan> fastest;
      try {
        fastest = make_plan(usable.input(), choice);
      } catch (const Error&) {
        EXPECT_THROW(preferring_memory(study, choice), Error) << i;
        continue;
      }
      const Plan plan = preferring_memory(study, choice);
      ASSERT_TRUE(plan.preferred);
      EXPECT_EQ(plan.preferred->fastest_step_seconds, fastest->predicted.step_seconds) << i;
      EXPECT_EQ(plan.preferred->fastest_peak_memory_bytes, peak_of(*fastest)) << i;
      const double most = 1.01 * fastest->predicted.step_seconds;
      EXPECT_LE(plan.predicted.step_seconds, most) << i;
      EXPECT_LE(peak_of(plan), usable.cost.profile().memory_bytes) << i;
      for (const Plan& other : all_plans(usable, choice, 8)) {
        if (other.predicted.step_seconds > most) continue;
        EXPECT_GE(peak_of(other), peak_of(plan))
            << i << ", " << percent << " %: " << describe(other.fixed.deployment) << ", "
            << other.fixed.batching.microbatches << " microbatches beside " << describe(plan.fixed.deployment) << ", "
            << plan.fixed.batching.microbatches;
      }
      leaner += peak_of(plan) < peak_of(*fastest) ? 1 : 0;
    }
  }
  RecordProperty("leaner", leaner);
}

TEST_P(Prefer, WhatIsTakenIsPredictedAsThatPlanAloneIs) {
  const PolicyChoice choice = parse_policy(GetParam());
  const Study study = make_study({{64, 8}, {256, 8}, {128, 4}}, 1, 4, 8);
  const Plan plan = preferring_memory(study, choice);
  ClockLatency latency(study.cost, study.workload.backbone);
  const PlanningInput input = study.input();
  const Prediction anew = predict(plan.fixed, {study.workload, study.samples}, latency, input.judge);
  EXPECT_EQ(anew.step_seconds, plan.predicted.step_seconds);
  EXPECT_EQ(anew.peak_memory_bytes, plan.predicted.peak_memory_bytes);
  EXPECT_EQ(anew.held_memory_bytes, plan.predicted.held_memory_bytes);
  EXPECT_EQ(anew.stage_busy_share, plan.predicted.stage_busy_share);
  EXPECT_EQ(anew.chunk_padding_share, plan.predicted.chunk_padding_share);
}

INSTANTIATE_TEST_SUITE_P(Policies, Prefer,
                         ::testing::Values("hf-peft", "nemo", "megatron-fsdp", "megatron-pp", "gpipe", "sl-peft",
                                           "mlora", "muxtune", "muxtune:drain=off",
                                           "muxtune:alignment=packed:pad_to=none"));

TEST(Preference, SpeedLeavesNothingInThePlanAndAllMemoryUsable) {
  const Study study = make_study({{64, 4}, {128, 4}}, 1, 2);
  const Plan plan = make_plan(study.input(), parse_policy("sl-peft"));
  EXPECT_FALSE(plan.preferred);
  EXPECT_EQ(to_json(plan).find("prefer"), std::string::npos);
  const Study full = with_memory(study, peak_of(plan));
  EXPECT_EQ(make_plan(full.input(), parse_policy("sl-peft")).fixed.batching.microbatches,
            plan.fixed.batching.microbatches);
}

TEST(Preference, ATenthOfTheMachineIsLeftFreeOnce) {
  costmodel::Profile profile;
  profile.memory_bytes = 9'000'000;  // of a CPU's ten
  for (const Preference preference : {Preference::speed, Preference::memory}) {
    EXPECT_EQ(usable_memory(profile, preference).usable, 9'000'000);
    EXPECT_NEAR(static_cast<double>(usable_memory(profile, preference).free), 1e6, 1);
  }
  profile.device = "a40";
  EXPECT_EQ(usable_memory(profile, Preference::speed).usable, 9'000'000);
  EXPECT_EQ(usable_memory(profile, Preference::speed).free, 0);
  EXPECT_EQ(usable_memory(profile, Preference::memory).usable, 8'100'000);
  EXPECT_EQ(usable_memory(profile, Preference::memory).free, 900'000);
}

TEST(Preference, WhereOnlyTheFreeShareIsMissingTheRemedyIsToUseIt) {
  const Study study = make_study({{512, 4}}, 1, 1);
  const PolicyChoice choice = parse_policy("hf-peft:recompute=full");
  const Overrides overrides{.tp = 1, .pp = 1, .microbatches = 4};
  const Study tight = with_memory(study, peak_of(make_plan(study.input(overrides), choice)));
  EXPECT_NO_THROW(make_plan(tight.input(overrides), choice));
  try {
    preferring_memory(tight, choice, overrides);
    FAIL() << "it uses what is to be left free";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("plan with --prefer speed"), std::string::npos) << error.what();
  }
}

TEST(Preference, OtherSplitsOfTheLayersAreChosenFromToo) {
  for (const char* policy : {"gpipe", "mlora"}) {
    Study study = make_study({{64, 8}, {256, 8}}, 1, 4, 9);
    study.workload.backbone.vocabulary = 64000;
    const Overrides balanced{.tp = {}, .pp = {}, .microbatches = {}, .split = {LayerSplit::Kind::balanced}};
    const PolicyChoice choice = parse_policy(policy);
    const Plan plan = preferring_memory(study, choice, balanced);
    const double most = 1.01 * plan.preferred->fastest_step_seconds;
    EXPECT_EQ(plan.preferred->fastest_step_seconds, make_plan(study.input(balanced), choice).predicted.step_seconds);
    const Plan even = preferring_memory(study, choice);
    if (even.predicted.step_seconds > most) continue;
    EXPECT_GE(peak_of(even), peak_of(plan)) << policy;
  }
}

}  // namespace
}  // namespace braid::planner

#include "planner/bound/step_demand.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/policies/registry.h"
#include "planner/search/make_plan.h"
#include "planner/studies.h"

namespace braid::planner {
namespace {

using testing::make_study;
using testing::Study;

bool no_larger(const Extent& a, const Extent& b) {
  return a.tokens <= b.tokens && a.scored <= b.scored && a.sequences <= b.sequences;
}

RC_GTEST_PROP(StepDemands, WhatIsSaidOfManyNumbersOfMicrobatchesHoldsForEachOfThem, ()) {
  const std::int64_t batch = *rc::gen::inRange(1, 40), replicas = *rc::gen::inRange(1, 4);
  const Study study = make_study({{*rc::gen::inRange(8, 200), batch}}, 1, 1);
  BoundScope scope;
  scope.deployment = deploy(study.workload.backbone.layers, 1, 1, replicas);
  const StepDemands demands(scope, {study.workload, study.samples}, *rc::gen::arbitrary<bool>());
  const std::int64_t first = *rc::gen::inRange<std::int64_t>(1, batch + 1);
  const std::int64_t last = *rc::gen::inRange<std::int64_t>(first, batch + 1);
  const StepDemand all = demands.within(0, first, last);
  for (std::int64_t microbatches = first; microbatches <= last; ++microbatches) {
    const StepDemand each = demands.of(0, microbatches);
    RC_ASSERT(all.tokens == each.tokens);
    RC_ASSERT(all.scored == each.scored);
    RC_ASSERT(all.sequences == each.sequences);
    RC_ASSERT(all.shortest == each.shortest);
    RC_ASSERT(all.microbatches <= each.microbatches);
    RC_ASSERT(all.scored_microbatches <= each.scored_microbatches);
    RC_ASSERT(no_larger(each.most, all.most));
    RC_ASSERT(no_larger(all.least, each.least));
  }
}

TEST(LowerBound, LooksAtEveryNumberOfMicrobatchesInFewRuns) {
  for (const std::int64_t most : {1, 2, 255, 256, 257, 1000, 32768, 10'000'000}) {
    std::int64_t next = 1;
    for (const auto& [first, last] : bounded_together(most)) {
      ASSERT_EQ(first, next);
      ASSERT_GE(last, first);
      ASSERT_LE(last - first, first / 32);
      if (first < 256) {
        ASSERT_EQ(last, first);
      }
      next = last + 1;
    }
    EXPECT_EQ(next, most + 1);
  }
  // Each doubling adds as many.
  EXPECT_LE(bounded_together(1 << 20).size(), 256U + 12 * 24);
}

TEST(LowerBound, OfManyNumbersTogetherIsNoGreaterThanOfEach) {
  const Study study = make_study({{64, 700}, {32, 300}}, 1, 2);
  BoundScope scope;
  scope.deployment = deploy(study.workload.backbone.layers, 1, 2, 1);
  const WindowInput window{study.workload, study.samples};
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t microbatches = 1; microbatches <= 700; ++microbatches) {
    scope.microbatches = microbatches;
    least = std::min(least, lower_bound(scope, window, study.cost).step_seconds);
  }
  scope.microbatches = 0;
  const double together = lower_bound(scope, window, study.cost).step_seconds;
  EXPECT_LE(together, least);
  EXPECT_GT(together, 0.95 * least);
}

/// The microbatches of all Programs that planning replays, which is what takes its time.
std::int64_t replayed_microbatches(std::int64_t batch) {
  const Study study = make_study({{32, batch}}, 1, 4);
  std::int64_t replayed = 0;
  PlanningInput input = study.input();
  input.judge = [&](const Program& program, const Durations& durations) {
    replayed += std::ssize(program.microbatches);
    return sim::replay(program, durations);
  };
  make_plan(input, parse_policy("nemo"));
  return replayed;
}

TEST(MakePlan, WorkGrowsNoFasterThanTheGlobalBatch) {
  const std::int64_t small = replayed_microbatches(256), large = replayed_microbatches(2048);
  EXPECT_GT(small, 0);
  EXPECT_LT(static_cast<double>(large), 1.5 * 8 * static_cast<double>(small));
}

}  // namespace
}  // namespace braid::planner

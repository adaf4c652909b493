// How good the template is: what MuxTune's appendix A proves of it, what its rules are worth, how far the optimum is.
#include <algorithm>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/optimal_pipeline.h"
#include "planner/pipeline_generators.h"
#include "planner/pipeline_orders.h"

namespace braid::planner {
namespace {

using namespace testing;

/// MuxTune's Theorem 2 (appendix A). The paper states it for equal stages and passes; chunk groups, longer backward
/// passes and messages do not break it.
RC_GTEST_PROP(TemplateOptimality, OnEqualStagesTheLastOneNeverIdlesBetweenItsFirstAndLastPass, ()) {
  StudyShape shape = any_shape();
  shape.chunks = *rc::gen::element(1, 1, 4);
  shape.message = *rc::gen::element(0.0, 0.0, 0.3);
  shape.backward_ratio = *rc::gen::element(1.0, 1.0, 2.0);
  RandomStream random(any_seed());
  const PipelineInstance instance = random_instance(shape, random);
  RC_ASSERT(idle_of_last_stage(instance, schedule_of(instance, {})) == 0);
}

/// Lemma 1 as a bound: the warm-up is what it says, the drain is no shorter (it is longer where stages before the last
/// have longer backward passes to catch up with).
RC_GTEST_PROP(TemplateOptimality, OnEqualStagesItTakesNoLessThanLemma1Says, ()) {
  RandomStream random(any_seed());
  const PipelineInstance instance = random_instance(any_shape(), random);
  const PipelineSchedule schedule = schedule_of(instance, {});
  Nanoseconds longest = 0, shortest = instance.jobs[0].forward[0], work = 0;
  for (const PipelineJob& job : instance.jobs) {
    longest = std::max(longest, job.forward[0]);
    shortest = std::min(shortest, job.forward[0]);
    work += job.forward[0] + job.backward[0];
  }
  RC_ASSERT(schedule.stages.back()[0].start == (instance.stages - 1) * longest);
  RC_ASSERT(schedule.makespan >= (instance.stages - 1) * (longest + shortest) + work);
}

TEST(TemplateOptimality, InOtherOrdersTheLastStageIdles) {
  const PipelineInstance ascending = even_buckets(3, {1, 10}, {1, 2});
  EXPECT_EQ(idle_of_last_stage(ascending, schedule_of(ascending, {})), 0);
  EXPECT_GT(idle_of_last_stage(ascending, schedule_of(ascending, {.descending = false})), 0);
}

TEST(TemplateOptimality, AfterASlowerStageTheLastOneIdles) {
  PipelineInstance instance = even_buckets(2, {5}, {2});
  for (PipelineJob& job : instance.jobs) job.forward[1] = job.backward[1] = 1;
  EXPECT_GT(idle_of_last_stage(instance, schedule_of(instance, {})), 0);
}

TEST(TemplateOptimality, LastStageThatNeverIdlesIsNotYetTheFastestPipeline) {
  // The longest bucket in the middle, as in the paper's Figure 22(e): a shorter warm-up is worth more.
  const PipelineInstance instance = even_buckets(2, {2, 5, 3}, {1, 1, 1});
  EXPECT_EQ(schedule_of(instance, {}).makespan, 27);
  EXPECT_EQ(schedule_of(instance, {.descending = false}).makespan, 26);
}

/// Single rules help on average, though on single instances each may harm. Not rule 1, which alone is worth nothing in
/// the mean where memory is plentiful: it lengthens the warm-up by as much as it saves.
TEST(TemplateOptimality, OnAverageRulesHelp) {
  for (const double memory_in_warm_ups : {0.0, 1.0}) {
    for (const int stages : {4, 8}) {
      StudyShape shape;
      shape.stages = stages;
      shape.memory = memory_in_warm_ups * stages;
      const RuleEffects effects = study_rules(shape, 300, 17);
      EXPECT_GT(effects.consecutive.mean, 1.01);
      EXPECT_GT(effects.eager.mean, 1.01);
      EXPECT_GT(effects.backward_first.mean, 1.03);
      EXPECT_GT(effects.plain_1f1b.mean, 1.2);
      EXPECT_GT(effects.descending.mean, 0.99);
      EXPECT_GE(effects.bound.least, 1.0);
    }
  }
}

/// All orders of a stage's passes in which each job goes forward before it goes backward.
std::vector<std::vector<PipelineSlot>> all_stage_orders(std::int32_t jobs) {
  std::vector<int> passes;  // a job's number twice: first forward, then backward
  for (std::int32_t j = 0; j < jobs; ++j) passes.insert(passes.end(), 2, j);
  std::vector<std::vector<PipelineSlot>> orders;
  do {
    std::vector<bool> seen(static_cast<std::size_t>(jobs), false);
    std::vector<PipelineSlot>& order = orders.emplace_back();
    for (const int job : passes) {
      order.push_back({seen[static_cast<std::size_t>(job)] ? Kind::backward : Kind::forward, job, 0, 0});
      seen[static_cast<std::size_t>(job)] = true;
    }
  } while (std::next_permutation(passes.begin(), passes.end()));
  return orders;
}

Nanoseconds least_of_all_orders(const PipelineInstance& instance) {
  const auto orders = all_stage_orders(static_cast<std::int32_t>(instance.jobs.size()));
  Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
  for (const auto& first : orders) {
    if (instance.memory[0] > 0 && most_held(instance, first, 0) > instance.memory[0]) continue;
    for (const auto& second : orders) {
      if (instance.memory[1] > 0 && most_held(instance, second, 1) > instance.memory[1]) continue;
      if (const auto times = derive_times(instance, {first, second})) least = std::min(least, times->makespan);
    }
  }
  return least;
}

TEST(OptimalPipeline, FindsTheLeastOfAllOrders) {
  StudyShape shape;
  shape.stages = 2;
  shape.buckets = 3;
  shape.most_jobs = 1;
  shape.unevenness = 1;
  RandomStream random(23);
  for (int i = 0; i < 15; ++i) {
    shape.memory = i % 3;
    const PipelineInstance instance = random_instance(shape, random);
    const Nanoseconds never = std::numeric_limits<Nanoseconds>::max();
    EXPECT_EQ(OptimalPipeline(instance).least_below(never), least_of_all_orders(instance));
  }
}

TEST(TemplateOptimality, NeverFasterThanTheOptimumAndOnAverageWithinATenth) {
  StudyShape shape;
  shape.buckets = 4;
  shape.most_jobs = 1;
  RandomStream random(29);
  Ratios gap;
  for (int i = 0; i < 24; ++i) {
    shape.stages = 2 + i % 2;
    shape.unevenness = 0.3 * (i / 2 % 2);
    shape.memory = 1.5 * (i / 4 % 3);
    const PipelineInstance instance = random_instance(shape, random);
    const Nanoseconds makespan = schedule_of(instance, {}).makespan;
    const Nanoseconds optimum = OptimalPipeline(instance).least_below(std::numeric_limits<Nanoseconds>::max());
    EXPECT_LE(optimum, makespan);
    gap.add(static_cast<double>(makespan) / static_cast<double>(optimum));
  }
  EXPECT_LT(gap.mean, 1.1);
}

}  // namespace
}  // namespace braid::planner

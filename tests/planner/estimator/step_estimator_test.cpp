#include "planner/estimator/step_estimator.h"

#include <cmath>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "planner/estimator/task_counts.h"
#include "planner/policies/registry.h"
#include "planner/studies.h"
#include "support.h"

namespace braid::planner {
namespace {

using testing::make_study;
using testing::Study;
using testing::StudyTask;

std::vector<StudyTask> any_kinds(const std::vector<std::int64_t>& batches = {8, 16}) {
  std::vector<StudyTask> kinds;
  for (const std::int64_t length : {64, 128, 256}) {
    for (const std::int64_t batch : batches) kinds.push_back({length, batch, 8, 16, false});
  }
  return kinds;
}

/// Its samples as its tasks' lengths say.
Study study_of(const std::vector<StudyTask>& tasks, std::int64_t gpus = 4) {
  Study study = make_study(tasks, 1, gpus, 32);
  std::vector<std::vector<workload::SampleSize>> sizes;
  for (const workload::Task& task : study.workload.tasks) sizes.push_back(workload::sample_sizes(task));
  study.samples = {study.workload.tasks, std::move(sizes)};
  return study;
}

std::vector<std::int32_t> any_set(RandomStream& random, std::size_t kinds, std::uint64_t tasks) {
  std::vector<std::int32_t> counts(kinds, 0);
  for (; tasks > 0; --tasks) ++counts[random.next_below(kinds)];
  return counts;
}

/// Fusion, template and costs without a replay are about what the replay says.
TEST(StepEstimator, IsAboutWhatAReplaySays) {
  const Study study = study_of(any_kinds());
  for (const char* policy :
       {"muxtune", "sl-peft", "mlora", "nemo", "muxtune:pad_to=none", "sl-peft:pad_to=none", "nemo:pad_to=none"}) {
    const auto estimator = make_step_estimator(study.input(), parse_policy(policy), 6);
    RandomStream random(11);
    double worst = 0;
    int estimated = 0;
    for (std::uint64_t i = 0; i < 20; ++i) {
      const auto counts = any_set(random, estimator->kinds(), 1 + i % 6);
      const std::optional<StepEstimate> estimate = estimator->estimate(counts);
      if (!estimate) continue;
      ++estimated;
      worst = std::max(worst, std::abs(estimate->step_seconds / estimator->replayed(counts) - 1));
    }
    EXPECT_EQ(estimated, 20) << policy;
    EXPECT_LT(worst, 0.01) << policy;
    RecordProperty(fmt::format("{}_worst_percent", policy), fmt::format("{:.2f}", 100 * worst));
  }
}

/// A stream that is never drained, of two and three tasks of few samples.
TEST(StepEstimator, KnowsStreamsThatAreSlowToSettle) {
  const Study study = study_of(any_kinds({2, 4}));
  const auto estimator = make_step_estimator(study.input(), parse_policy("mlora"), 4);
  for (const std::vector<std::int32_t>& counts :
       {std::vector{2, 1, 0, 0, 0, 0}, {1, 1, 0, 0, 0, 0}, {2, 0, 1, 0, 0, 0}, {0, 1, 0, 0, 1, 1}}) {
    const double error = estimator->estimate(counts)->step_seconds / estimator->replayed(counts) - 1;
    EXPECT_LT(std::abs(error), 0.01) << fmt::format("{}", counts);
  }
}

/// What most of the search was left out for costs little.
TEST(StepEstimator, ItsPlansAreAboutAsFastAsThoseOfAFullSearch) {
  const Study study = study_of(any_kinds());
  for (const char* policy : {"muxtune", "lorafusion", "lobra"}) {
    const auto estimator = make_step_estimator(study.input(), parse_policy(policy), 6);
    RandomStream random(13);
    double sum = 0, worst = 0;
    constexpr int kSets = 6;
    for (int i = 0; i < kSets; ++i) {
      const auto counts = any_set(random, estimator->kinds(), 2 + random.next_below(5));
      const CountedTasks tasks = counted_tasks(study.input(), counts, true);
      const double full =
          make_plan(study.input().of(tasks.workload, tasks.samples), parse_policy(policy)).predicted.step_seconds;
      const double slower = estimator->replayed(counts) / full - 1;
      sum += slower;
      worst = std::max(worst, slower);
    }
    RecordProperty(fmt::format("{}_mean_percent", policy), fmt::format("{:.2f}", 100 * sum / kSets));
    RecordProperty(fmt::format("{}_worst_percent", policy), fmt::format("{:.2f}", 100 * worst));
    EXPECT_LT(sum / kSets, 0.02) << policy;
    EXPECT_LT(worst, 0.06) << policy;
  }
}

TEST(StepEstimator, KnowsThatMessagesGoThroughTheHosts) {
  const Overrides stages{.tp = {}, .pp = 4, .microbatches = 4};
  const PolicyChoice choice = parse_policy("mlora:transport=hosts:overlap=off");
  const Study kinds = study_of(any_kinds());
  const auto estimator = make_step_estimator(kinds.input(stages), choice, 4);
  const std::vector<std::int32_t> counts = {1, 0, 1, 0, 2, 0};
  const Study set = study_of({any_kinds()[0], any_kinds()[2], any_kinds()[4], any_kinds()[4]});
  const double full = make_plan(set.input(stages), choice).predicted.step_seconds;
  EXPECT_NEAR(estimator->replayed(counts) / full, 1, 1e-4);
  EXPECT_NEAR(estimator->estimate(counts)->step_seconds / full, 1, 0.01);
  const double over_links = make_plan(set.input(stages), parse_policy("mlora:overlap=off")).predicted.step_seconds;
  EXPECT_GT(full, 1.02 * over_links);
}

TEST(StepEstimator, OneTaskTakesWhatItsPlanSays) {
  const Study study = study_of(any_kinds());
  const auto estimator = make_step_estimator(study.input(), parse_policy("nemo"), 1);
  for (std::size_t kind = 0; kind < estimator->kinds(); ++kind) {
    std::vector<std::int32_t> counts(estimator->kinds(), 0);
    counts[kind] = 1;
    EXPECT_EQ(estimator->estimate(counts)->step_seconds, estimator->alone(kind)->predicted.step_seconds);
  }
}

/// A set's tasks never take longer together than one after another, nor more tasks less time.
TEST(StepEstimator, SharingPaysAndMoreTasksTakeLonger) {
  const Study study = study_of(any_kinds());
  const auto estimator = make_step_estimator(study.input(), parse_policy("muxtune"), 6);
  RandomStream random(12);
  for (int i = 0; i < 20; ++i) {
    auto counts = any_set(random, estimator->kinds(), 5);
    double apart = 0;
    for (std::size_t kind = 0; kind < counts.size(); ++kind)
      apart += counts[kind] * estimator->alone(kind)->predicted.step_seconds;
    const double together = estimator->estimate(counts)->step_seconds;
    EXPECT_LT(together, apart);
    ++counts[random.next_below(counts.size())];
    EXPECT_GT(estimator->estimate(counts)->step_seconds, together);
  }
}

/// Where samples vary in length, and of sets that share it, braid's estimate is the least of what policies' own say.
TEST(StepEstimator, OfAPolicyThatUnitesOthersIsNeverTheSlower) {
  const Study study = study_of(any_kinds({4, 8}));
  const auto braid = make_step_estimator(study.input(), parse_policy("braid"), 4);
  for (const char* policy : {"muxtune", "sl-peft", "mlora", "nemo", "lobra", "task-fused", "lorafusion"}) {
    const auto one = make_step_estimator(study.input(), parse_policy(policy), 4);
    RandomStream random(14);
    for (std::uint64_t i = 0; i < 6; ++i) {
      const auto counts = any_set(random, one->kinds(), 1 + i % 4);
      const std::optional<StepEstimate> other = one->estimate(counts), estimate = braid->estimate(counts);
      ASSERT_TRUE(estimate && other) << policy;
      EXPECT_LE(estimate->step_seconds, 1.02 * other->step_seconds) << policy << " " << fmt::format("{}", counts);
      EXPECT_GT(estimate->busy_gpu_seconds, 0);
      EXPECT_NEAR(estimate->step_seconds / braid->replayed(counts), 1, 0.01);
    }
  }
}

/// Estimates of one layout have their layers in the same places, whatever policy they are of.
TEST(StepEstimator, LayoutsAreNumberedAcrossPolicies) {
  const Study study = study_of(any_kinds({4, 8}));
  const auto layouts = std::make_shared<Layouts>();
  const Overrides tensor{.tp = 4, .pp = 1, .microbatches = {}};
  const std::vector<std::int32_t> counts = {1, 0, 1, 0, 0, 0};
  const auto muxtune = make_step_estimator(study.input(tensor), parse_policy("muxtune"), 4, layouts);
  const auto lobra = make_step_estimator(study.input(tensor), parse_policy("task-fused"), 4, layouts);
  const auto stages =
      make_step_estimator(study.input({.tp = 1, .pp = 4, .microbatches = {}}), parse_policy("muxtune"), 4, layouts);
  EXPECT_EQ(muxtune->estimate(counts)->layout, lobra->estimate(counts)->layout);
  EXPECT_NE(muxtune->estimate(counts)->layout, stages->estimate(counts)->layout);
}

/// Where memory is short.
TEST(StepEstimator, APartOfWhatFitsDoesToo) {
  Study study = study_of(any_kinds({2, 4, 8}), 1);
  study.workload.backbone = costmodel::builtin_backbone("llama2-13b");
  for (const char* policy : {"muxtune", "sl-peft", "mlora"}) {
    const auto estimator = make_step_estimator(study.input(), parse_policy(policy), 8);
    RandomStream random(17);
    int fitting = 0;
    for (int i = 0; i < 60; ++i) {
      auto counts = any_set(random, estimator->kinds(), 2 + random.next_below(7));
      if (!estimator->estimate(counts)) continue;
      ++fitting;
      for (std::size_t kind = 0; kind < counts.size(); ++kind) {
        if (counts[kind] == 0) continue;
        --counts[kind];
        EXPECT_TRUE(estimator->estimate(counts)) << policy << " " << fmt::format("{} {}", counts, kind);
        ++counts[kind];
      }
    }
    EXPECT_GT(fitting, 5) << policy;
  }
}

TEST(StepEstimator, SaysWhatDoesNotFit) {
  Study study = make_study(any_kinds(), 1, 1, 32);
  study.workload.backbone = costmodel::builtin_backbone("llama2-70b");
  EXPECT_TRUE(contains(error_of([&] { make_step_estimator(study.input(), parse_policy("muxtune"), 4); }),
                       "does not fit memory under muxtune"));
}

}  // namespace
}  // namespace braid::planner

#include "planner/search/step_estimator.h"

#include <cmath>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "base/random.h"
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
    StepEstimator estimator(study.input(), parse_policy(policy), 6);
    RandomStream random(11);
    double worst = 0;
    int estimated = 0;
    for (std::uint64_t i = 0; i < 20; ++i) {
      const auto counts = any_set(random, estimator.kinds(), 1 + i % 6);
      const std::optional<StepEstimate> estimate = estimator.estimate(counts);
      if (!estimate) continue;
      ++estimated;
      worst = std::max(worst, std::abs(estimate->step_seconds / estimator.replayed(counts) - 1));
    }
    EXPECT_EQ(estimated, 20) << policy;
    EXPECT_LT(worst, 0.01) << policy;
    RecordProperty(fmt::format("{}_worst_percent", policy), fmt::format("{:.2f}", 100 * worst));
  }
}

/// A stream that is never drained, of two and three tasks of few samples.
TEST(StepEstimator, KnowsStreamsThatAreSlowToSettle) {
  const Study study = study_of(any_kinds({2, 4}));
  StepEstimator estimator(study.input(), parse_policy("mlora"), 4);
  for (const std::vector<std::int32_t>& counts :
       {std::vector{2, 1, 0, 0, 0, 0}, {1, 1, 0, 0, 0, 0}, {2, 0, 1, 0, 0, 0}, {0, 1, 0, 0, 1, 1}}) {
    const double error = estimator.estimate(counts)->step_seconds / estimator.replayed(counts) - 1;
    EXPECT_LT(std::abs(error), 0.01) << fmt::format("{}", counts);
  }
}

/// What most of the search was left out for costs little.
TEST(StepEstimator, ItsPlansAreAboutAsFastAsThoseOfAFullSearch) {
  const Study study = study_of(any_kinds());
  StepEstimator estimator(study.input(), parse_policy("muxtune"), 6);
  RandomStream random(13);
  double sum = 0, worst = 0;
  constexpr int kSets = 6;
  for (int i = 0; i < kSets; ++i) {
    const auto counts = any_set(random, estimator.kinds(), 2 + random.next_below(5));
    std::vector<StudyTask> tasks;
    for (std::size_t kind = 0; kind < counts.size(); ++kind)
      tasks.insert(tasks.end(), static_cast<std::size_t>(counts[kind]), any_kinds()[kind]);
    const double full = make_plan(study_of(tasks).input(), parse_policy("muxtune")).predicted.step_seconds;
    const double slower = estimator.replayed(counts) / full - 1;
    sum += slower;
    worst = std::max(worst, slower);
  }
  RecordProperty("mean_percent", fmt::format("{:.2f}", 100 * sum / kSets));
  RecordProperty("worst_percent", fmt::format("{:.2f}", 100 * worst));
  EXPECT_LT(sum / kSets, 0.02);
  EXPECT_LT(worst, 0.06);
}

TEST(StepEstimator, KnowsThatMessagesGoThroughTheHosts) {
  const Overrides stages{.tp = {}, .pp = 4, .microbatches = 4};
  const PolicyChoice choice = parse_policy("mlora:transport=hosts:overlap=off");
  const Study kinds = study_of(any_kinds());
  StepEstimator estimator(kinds.input(stages), choice, 4);
  const std::vector<std::int32_t> counts = {1, 0, 1, 0, 2, 0};
  const Study set = study_of({any_kinds()[0], any_kinds()[2], any_kinds()[4], any_kinds()[4]});
  const double full = make_plan(set.input(stages), choice).predicted.step_seconds;
  EXPECT_NEAR(estimator.replayed(counts) / full, 1, 1e-4);
  EXPECT_NEAR(estimator.estimate(counts)->step_seconds / full, 1, 0.01);
  const double over_links = make_plan(set.input(stages), parse_policy("mlora:overlap=off")).predicted.step_seconds;
  EXPECT_GT(full, 1.02 * over_links);
}

TEST(StepEstimator, OneTaskTakesWhatItsPlanSays) {
  const Study study = study_of(any_kinds());
  StepEstimator estimator(study.input(), parse_policy("nemo"), 1);
  for (std::size_t kind = 0; kind < estimator.kinds(); ++kind) {
    std::vector<std::int32_t> counts(estimator.kinds(), 0);
    counts[kind] = 1;
    EXPECT_EQ(estimator.estimate(counts)->step_seconds, estimator.alone(kind)->predicted.step_seconds);
  }
}

/// A set's tasks never take longer together than one after another, nor more tasks less time.
TEST(StepEstimator, SharingPaysAndMoreTasksTakeLonger) {
  const Study study = study_of(any_kinds());
  StepEstimator estimator(study.input(), parse_policy("muxtune"), 6);
  RandomStream random(12);
  for (int i = 0; i < 20; ++i) {
    auto counts = any_set(random, estimator.kinds(), 5);
    double apart = 0;
    for (std::size_t kind = 0; kind < counts.size(); ++kind)
      apart += counts[kind] * estimator.alone(kind)->predicted.step_seconds;
    const double together = estimator.estimate(counts)->step_seconds;
    EXPECT_LT(together, apart);
    ++counts[random.next_below(counts.size())];
    EXPECT_GT(estimator.estimate(counts)->step_seconds, together);
  }
}

/// Where memory is short.
TEST(StepEstimator, APartOfWhatFitsDoesToo) {
  Study study = study_of(any_kinds({2, 4, 8}), 1);
  study.workload.backbone = costmodel::builtin_backbone("llama2-13b");
  for (const char* policy : {"muxtune", "sl-peft", "mlora"}) {
    StepEstimator estimator(study.input(), parse_policy(policy), 8);
    RandomStream random(17);
    int fitting = 0;
    for (int i = 0; i < 60; ++i) {
      auto counts = any_set(random, estimator.kinds(), 2 + random.next_below(7));
      if (!estimator.estimate(counts)) continue;
      ++fitting;
      for (std::size_t kind = 0; kind < counts.size(); ++kind) {
        if (counts[kind] == 0) continue;
        --counts[kind];
        EXPECT_TRUE(estimator.estimate(counts)) << policy << " " << fmt::format("{} {}", counts, kind);
        ++counts[kind];
      }
    }
    EXPECT_GT(fitting, 5) << policy;
  }
}

TEST(StepEstimator, SaysWhatDoesNotFit) {
  Study study = make_study(any_kinds(), 1, 1, 32);
  study.workload.backbone = costmodel::builtin_backbone("llama2-70b");
  EXPECT_TRUE(contains(error_of([&] { StepEstimator(study.input(), parse_policy("muxtune"), 4); }),
                       "does not fit memory under muxtune"));
}

}  // namespace
}  // namespace braid::planner

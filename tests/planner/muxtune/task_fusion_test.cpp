#include "planner/muxtune/task_fusion.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/error.h"
#include "planner/fusion_study.h"

namespace braid::planner {
namespace {

using testing::best_of;

/// A problem whose answers are tables, so that a law can read them again.
struct Instance {
  std::int32_t tasks = 0;
  std::int32_t stages = 1;
  std::int64_t microbatches = 1;
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<double>> seconds;  ///< of a run on each stage
  std::map<std::pair<std::int32_t, std::int32_t>, bool> fits;

  FusionProblem problem() const {
    return {tasks, stages, microbatches,
            [this](std::int32_t first, std::int32_t last, std::int32_t stage) {
              return seconds.at({first, last}).at(static_cast<std::size_t>(stage));
            },
            [this](std::int32_t first, std::int32_t last) {
              return fits.at({first, last});
            }};
  }
};

/// In [low, high), however small the case RapidCheck has in mind.
template <typename T>
T between(T low, T high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high));
}

RandomStream any_stream() {
  return RandomStream(between<std::uint64_t>(0, 1u << 30));
}

enum class CostRule { arbitrary, monotone };

/// Seconds are small whole numbers and there are 1, 2 or 4 stages: sums and quotients are exact and ties are common.
Instance any_instance(CostRule costs) {
  Instance instance;
  instance.tasks = between(1, 13);
  instance.stages = *rc::gen::element(1, 2, 4);
  instance.microbatches = between<std::int64_t>(1, 9);
  const int misfits = *rc::gen::element(0, 20, 60);
  RandomStream random = any_stream();
  for (std::int32_t length = 1; length <= instance.tasks; ++length) {
    for (std::int32_t first = 0; first + length <= instance.tasks; ++first) {
      const std::int32_t last = first + length - 1;
      std::vector<double>& here = instance.seconds[{first, last}];
      for (std::size_t stage = 0; stage < static_cast<std::size_t>(instance.stages); ++stage) {
        double floor = 0;
        if (costs == CostRule::monotone && length > 1) {
          floor =
              std::max(instance.seconds.at({first, last - 1})[stage], instance.seconds.at({first + 1, last})[stage]);
        }
        here.push_back(floor + static_cast<double>(random.next_below(8)));
      }
      instance.fits[{first, last}] = random.next_below(100) >= static_cast<std::uint64_t>(misfits);
    }
  }
  return instance;
}

/// Eq. 4 and 6, said once more and differently: over the whole list of runs.
double score(const Instance& instance, const std::vector<TaskRun>& runs, FusionIncrement increment) {
  double total = 0;
  for (const TaskRun& run : runs) {
    if (!instance.fits.at({run.first, run.last})) return std::numeric_limits<double>::infinity();
    const std::vector<double>& stages = instance.seconds.at({run.first, run.last});
    const double steady = static_cast<double>(instance.microbatches) * *std::max_element(stages.begin(), stages.end());
    const double latency = std::accumulate(stages.begin(), stages.end() - 1, steady);
    if (run.first == 0) {
      total += latency;
    } else {
      total += increment == FusionIncrement::one_pass ? steady : latency / static_cast<double>(stages.size());
    }
  }
  return total;
}

/// The partition that bit i of `cuts` cuts after task i.
std::vector<TaskRun> runs_of(std::uint32_t cuts, std::int32_t tasks) {
  std::vector<TaskRun> runs;
  std::int32_t first = 0;
  for (std::int32_t k = 0; k < tasks; ++k) {
    if (k + 1 < tasks && (cuts >> k & 1) == 0) continue;
    runs.push_back({first, k});
    first = k + 1;
  }
  return runs;
}

/// Of the partitions into each number of runs the best. A lower `cuts` of as many bits cuts earlier, the last cut
/// counting most, so that the first one found is the one that ties are for.
std::map<std::size_t, FusedTasks> by_exhaustive_search(const Instance& instance, FusionIncrement increment) {
  std::map<std::size_t, FusedTasks> best;
  for (std::uint32_t cuts = 0; cuts < 1u << (instance.tasks - 1); ++cuts) {
    const std::vector<TaskRun> runs = runs_of(cuts, instance.tasks);
    const double seconds = score(instance, runs, increment);
    if (std::isinf(seconds)) continue;
    const auto [entry, added] = best.try_emplace(runs.size(), FusedTasks{runs, seconds});
    if (!added && seconds < entry->second.seconds) entry->second = {runs, seconds};
  }
  return best;
}

void check_against_exhaustive_search(CostRule costs) {
  const Instance instance = any_instance(costs);
  for (const FusionIncrement increment : {FusionIncrement::one_pass, FusionIncrement::literal}) {
    const std::vector<FusedTasks> fused = fuse_tasks(instance.problem(), increment);
    const std::map<std::size_t, FusedTasks> expected = by_exhaustive_search(instance, increment);
    RC_ASSERT(fused.size() == expected.size());
    auto entry = expected.begin();
    for (const FusedTasks& partition : fused) {
      RC_ASSERT(partition.htasks.size() == entry->first);
      RC_ASSERT(std::abs(partition.seconds - entry->second.seconds) <= 1e-12 * entry->second.seconds);
      RC_ASSERT(partition.htasks == entry->second.htasks);
      ++entry;
    }
  }
}

RC_GTEST_PROP(TaskFusion, EqualsExhaustiveSearchTiesIncludedWhateverRunsCost, ()) {
  check_against_exhaustive_search(CostRule::arbitrary);
}

RC_GTEST_PROP(TaskFusion, EqualsExhaustiveSearchTiesIncludedWhereLongerRunsCostNoLess, ()) {
  check_against_exhaustive_search(CostRule::monotone);
}

RC_GTEST_PROP(TaskFusion, RealCostsScoreAsTheirRunsDo, ()) {
  Instance instance = any_instance(CostRule::arbitrary);
  RandomStream random = any_stream();
  for (auto& [run, stages] : instance.seconds) {
    for (double& here : stages) here = std::exp(6 * random.next_normal());
  }
  for (const FusionIncrement increment : {FusionIncrement::one_pass, FusionIncrement::literal}) {
    const std::map<std::size_t, FusedTasks> expected = by_exhaustive_search(instance, increment);
    for (const FusedTasks& partition : fuse_tasks(instance.problem(), increment)) {
      const double least = expected.at(partition.htasks.size()).seconds;
      RC_ASSERT(std::abs(partition.seconds - least) <= 1e-12 * least);
      RC_ASSERT(std::abs(score(instance, partition.htasks, increment) - least) <= 1e-12 * least);
    }
  }
}

/// Tasks whose passes take `tokens[k] * weights[s]` seconds, alone or together.
FusionProblem additive(const std::vector<double>& tokens, const std::vector<double>& weights,
                       std::int64_t microbatches) {
  return {static_cast<std::int32_t>(tokens.size()),
          static_cast<std::int32_t>(weights.size()),
          microbatches,
          [tokens, weights](std::int32_t first, std::int32_t last, std::int32_t stage) {
            return std::accumulate(tokens.begin() + first, tokens.begin() + last + 1, 0.0) *
                   weights[static_cast<std::size_t>(stage)];
          },
          {}};
}

TEST(TaskFusion, OnePassCountsTheWorkOfEveryHTaskAndThePrintedEquationLessThanHalf) {
  // Eight equal tasks, four stages, eight microbatches, forward and backward 1 s each: the last stage alone is busy for
  // 8 × 8 × 2 = 128 s, so no pipeline takes 60.5 s.
  const FusionProblem problem = additive(std::vector<double>(8, 2.0), {1, 1, 1, 1}, 8);
  EXPECT_EQ(fuse_tasks(problem, FusionIncrement::one_pass)[7].seconds, 3 * 2 + 8 * 8 * 2);
  EXPECT_EQ(fuse_tasks(problem, FusionIncrement::literal)[7].seconds, 60.5);
  EXPECT_EQ(fuse_tasks(problem)[7].seconds, 134);
}

TEST(TaskFusion, ThePrintedEquationInterleavesWhereFusingIsFaster) {
  // Two tasks that take 1 s a pass alone and 1.5 s together.
  const FusionProblem problem{
      2, 4, 8, [](std::int32_t first, std::int32_t last, std::int32_t) { return first == last ? 2.0 : 3.0; }, {}};
  EXPECT_EQ(best_of(fuse_tasks(problem, FusionIncrement::one_pass)).htasks.size(), 1u);
  EXPECT_EQ(best_of(fuse_tasks(problem, FusionIncrement::literal)).htasks.size(), 2u);
}

RC_GTEST_PROP(TaskFusion, FusingNeverPaysWhereSecondsAddUp, ()) {
  std::vector<double> tokens, weights;
  const int tasks = between(1, 20), stages = between(1, 6);
  for (int k = 0; k < tasks; ++k) tokens.push_back(between(1, 100));
  for (int s = 0; s < stages; ++s) weights.push_back(between(1, 10));
  std::sort(tokens.begin(), tokens.end());
  const auto microbatches = between<std::int64_t>(1, 16);
  const std::vector<FusedTasks> fused = fuse_tasks(additive(tokens, weights, microbatches));
  RC_ASSERT(fused.size() == tokens.size());
  for (std::size_t n = 1; n < fused.size(); ++n) RC_ASSERT(fused[n].seconds <= fused[n - 1].seconds);
  const double before_last = std::accumulate(weights.begin(), weights.end() - 1, 0.0);
  const double slowest = *std::max_element(weights.begin(), weights.end());
  const double total = std::accumulate(tokens.begin(), tokens.end(), 0.0);
  RC_ASSERT(fused.back().seconds == tokens.front() * before_last + static_cast<double>(microbatches) * slowest * total);
}

RC_GTEST_PROP(TaskFusion, EveryHTaskMoreCostsOnePassWhereLaunchesBind, ()) {
  const auto stages = between(1, 6), tasks = between(1, 20);
  const auto microbatches = between<std::int64_t>(1, 16);
  const std::vector<FusedTasks> fused =
      fuse_tasks({tasks, stages, microbatches, [](std::int32_t, std::int32_t, std::int32_t) { return 3.0; }, {}});
  for (std::size_t n = 0; n < fused.size(); ++n) {
    RC_ASSERT(fused[n].seconds == 3.0 * (stages - 1) + 3.0 * static_cast<double>(microbatches) * (1.0 + n));
    // All alike: of two hTasks or more the last take all they can.
    const auto in_front = static_cast<std::int32_t>(n);
    RC_ASSERT(fused[n].htasks.back() == (TaskRun{in_front, tasks - 1}));
  }
}

TEST(TaskFusion, TasksWithDifferentSlowestStagesSeemToGainByFusing) {
  // Seconds add up, yet Σ max > max Σ: the DP cannot see that a pipeline fills one task's gaps with the other.
  const FusionProblem problem{2,
                              2,
                              8,
                              [](std::int32_t first, std::int32_t last, std::int32_t stage) {
                                return first != last ? 4.0 : first == stage ? 1.0 : 3.0;
                              },
                              {}};
  const std::vector<FusedTasks> fused = fuse_tasks(problem);
  EXPECT_EQ(fused[0].seconds, 4 + 8 * 4);
  EXPECT_EQ(fused[1].seconds, 1 + 8 * (3 + 3));
}

TEST(TaskFusion, LeavesOutWhatCannotFit) {
  FusionProblem problem = additive({1, 2, 3, 4}, {1, 1}, 4);
  problem.fits = [](std::int32_t first, std::int32_t last) { return last - first < 2; };
  const std::vector<FusedTasks> pairs = fuse_tasks(problem);
  ASSERT_EQ(pairs.size(), 3u);
  EXPECT_EQ(pairs.front().htasks, (std::vector<TaskRun>{{0, 1}, {2, 3}}));
  problem.fits = [](std::int32_t first, std::int32_t last) { return first > 1 || last < 1; };
  EXPECT_TRUE(fuse_tasks(problem).empty()) << "task 1 fits nowhere";
  problem.tasks = 0;
  EXPECT_TRUE(fuse_tasks(problem).empty());
}

TEST(TaskFusion, AsksOnceForEachRunAndNothingOfRunsThatDoNotFit) {
  std::map<std::pair<std::int32_t, std::int32_t>, int> fits_calls;
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, int> seconds_calls;
  const FusionProblem problem{12, 3, 4,
                              [&](std::int32_t first, std::int32_t last, std::int32_t stage) {
                                ++seconds_calls[{first, last, stage}];
                                return 1.0;
                              },
                              [&](std::int32_t first, std::int32_t last) {
                                ++fits_calls[{first, last}];
                                return last - first < 5;
                              }};
  fuse_tasks(problem);
  EXPECT_EQ(fits_calls.size(), 78u);
  EXPECT_EQ(seconds_calls.size(), 3u * (12 + 11 + 10 + 9 + 8));
  for (const auto& [run, calls] : fits_calls) EXPECT_EQ(calls, 1);
  for (const auto& [run, calls] : seconds_calls) EXPECT_EQ(calls, 1);
}

TEST(TaskFusion, RefusesProblemsThatMeanNothing) {
  FusionProblem problem = additive({1, 2}, {1}, 1);
  problem.stages = 0;
  EXPECT_THROW(fuse_tasks(problem), InternalError);
  problem = additive({1, 2}, {1}, 0);
  EXPECT_THROW(fuse_tasks(problem), InternalError);
  problem = additive({1, std::nan("")}, {1}, 1);
  EXPECT_THROW(fuse_tasks(problem), InternalError);
  problem = additive({1, -2}, {1}, 1);
  EXPECT_THROW(fuse_tasks(problem), InternalError);
}

TEST(TaskFusion, NeighboursAreNeverBetterThanTheBestPartitionOfAll) {
  for (const testing::StudySetting& setting : testing::study_settings()) {
    const testing::StudyResult result = testing::study(setting);
    std::cout << describe(result) << "\n";
    EXPECT_GE(result.least_contiguity, -1e-12) << setting.name;
    EXPECT_GE(result.mean_literal, 0) << setting.name;
    EXPECT_GT(result.literal_differs, 0) << setting.name;
  }
}

}  // namespace
}  // namespace braid::planner

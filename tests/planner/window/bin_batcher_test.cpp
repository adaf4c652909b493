#include "planner/window/bin_batcher.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "planner/program/orders.h"
#include "planner/studies.h"

namespace braid::planner {
namespace {

using namespace testing;

constexpr std::uint64_t kBinPlans = 200;

struct BinPlan {
  workload::Workload workload;
  workload::SampleIndex samples;
  FixedPlan fixed;
};

BinPlan drawn_bins(std::uint64_t seed) {
  RandomStream random(seed);
  const auto below = [&](std::uint64_t count) { return static_cast<std::int64_t>(random.next_below(count)); };
  std::vector<StudyTask> tasks(static_cast<std::size_t>(2 + below(4)));
  std::int64_t longest = 0;
  for (StudyTask& task : tasks) {
    task = {32 << below(4), 4 + below(12), 6 + below(6), 8, false};
    longest = std::max(longest, task.max_length);
  }
  constexpr std::int64_t kLayers = 4;
  FixedPlan fixed;
  fixed.deployment = deploy(kLayers, 1, 1 + below(kLayers), 1 + below(3));
  fixed.schedule.pipeline = PipelineTemplate::lora_1f1b;
  fixed.schedule.transfer_share = below(3) == 0 ? 0.5 : 0;
  for (TaskIndex task = 0; task < static_cast<TaskIndex>(tasks.size()); ++task) {
    if (fixed.htasks.empty() || below(2) == 0) fixed.htasks.emplace_back();
    fixed.htasks.back().push_back(task);
  }
  const std::int64_t multiple = below(2) == 0 ? 1 : 16;
  fixed.batching.bins = {longest + multiple + below(600), multiple, BinSearch::searched, true};
  workload::Workload workload = study_workload(tasks, kLayers);
  workload::SampleIndex samples = study_samples(workload);
  return {std::move(workload), std::move(samples), std::move(fixed)};
}

std::vector<Round> rounds_laid_out(const BinPlan& plan) {
  const WindowInput input{plan.workload, plan.samples};
  const std::unique_ptr<Batcher> batcher = make_batcher(plan.fixed, input);
  std::vector<Round> rounds;
  for (std::int64_t window = 0; window < window_count(plan.fixed, input); ++window) {
    for (std::vector<WindowStep>& round : rounds_of(window_steps(plan.fixed, input, window)))
      batcher->push(window, std::move(round));
    while (std::optional<Round> round = batcher->pull()) rounds.push_back(std::move(*round));
  }
  batcher->end();
  while (std::optional<Round> round = batcher->pull()) rounds.push_back(std::move(*round));
  return rounds;
}

TEST(BinBatcher, NoMicrobatchIsOverTheCapacityAndPaddingIsToTheMultiple) {
  for (std::uint64_t seed = 0; seed < kBinPlans; ++seed) {
    const BinPlan plan = drawn_bins(seed);
    for (const Round& round : rounds_laid_out(plan)) {
      for (const Microbatch& microbatch : microbatches_of(round.htasks)) {
        EXPECT_LE(microbatch.computed_tokens(), plan.fixed.batching.bins->capacity);
        std::map<TaskIndex, std::int64_t> of_task;
        std::map<TaskIndex, std::int64_t> batch;
        for (const Segment& segment : microbatch.segments) {
          of_task[segment.task] += segment.computed_tokens();
          EXPECT_EQ(batch.try_emplace(segment.task, segment.global_batch).first->second, segment.global_batch)
              << "two batches of a task in one microbatch";
        }
        for (const auto& [task, tokens] : of_task) EXPECT_EQ(tokens % plan.fixed.batching.bins->multiple, 0);
      }
    }
  }
}

/// LoRAFusion's bubble lemma, with the distance that stages need: in 1F1B the first stage runs the forward pass of
/// microbatch k + S - 1 before the backward pass of k, so that it is S at least.
TEST(BinBatcher, MergedRowsStandFarFromTheirTasksBatchBefore) {
  std::int64_t merged = 0;
  for (std::uint64_t seed = 0; seed < kBinPlans; ++seed) {
    const BinPlan plan = drawn_bins(seed);
    const std::int64_t least =
        most_under_way(plan.fixed.deployment.front().stages(), plan.fixed.schedule.transfer_share);
    using BatchOfTask = std::pair<TaskIndex, std::int64_t>;
    for (std::size_t replica = 0; replica < plan.fixed.deployment.size(); ++replica) {
      std::map<BatchOfTask, std::int64_t> last;  // of each batch its last microbatch on this replica
      std::int64_t place = 0;
      for (const Round& round : rounds_laid_out(plan)) {
        for (const HTaskRound& htask : round.htasks) {
          std::set<BatchOfTask> own;
          for (const WindowStep& step : round.steps) {
            if (step.htask == htask.htask) own.emplace(step.task, step.global_batch);
          }
          for (const ChunkGroup& group : htask.groups[replica]) {
            for (const Segment& segment : group.front().segments) {
              if (own.contains({segment.task, segment.global_batch})) continue;
              ++merged;
              EXPECT_EQ(group.front().id, htask.groups[replica].back().front().id) << "not the last";
              const auto before = last.find({segment.task, segment.global_batch - 1});
              if (before == last.end() || segment.global_batch % kMergedRounds == 0) continue;
              EXPECT_GE(place - before->second, least) << seed;
            }
            for (const Segment& segment : group.front().segments) last[{segment.task, segment.global_batch}] = place;
            ++place;
          }
        }
      }
    }
  }
  EXPECT_GT(merged, 2000);
}

TEST(BinBatcher, DealsAboutAsManyTokensToEachReplica) {
  for (std::uint64_t seed = 0; seed < kBinPlans; ++seed) {
    const BinPlan plan = drawn_bins(seed);
    std::vector<std::int64_t> tokens(plan.fixed.deployment.size(), 0);
    std::int64_t round_count = 0;
    for (const Round& round : rounds_laid_out(plan)) {
      if (++round_count > kMergedRounds) break;
      for (const Microbatch& microbatch : microbatches_of(round.htasks)) {
        for (const Segment& segment : microbatch.segments)
          tokens[static_cast<std::size_t>(microbatch.replica)] += segment.tokens();
      }
    }
    const auto [least, most] = std::minmax_element(tokens.begin(), tokens.end());
    // A bin that is filled up for one replica is at most one more than another has.
    EXPECT_LE(*most - *least, 2 * plan.fixed.batching.bins->capacity) << seed;
  }
}

TEST(BinBatcher, NamesTheSampleThatNoBinHolds) {
  BinPlan plan = drawn_bins(3);
  plan.fixed.batching.bins->capacity = 16;
  try {
    rounds_laid_out(plan);
    FAIL() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("more than the 16 of a microbatch"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace braid::planner

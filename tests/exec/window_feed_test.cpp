#include "exec/window_feed.h"

#include <gtest/gtest.h>

#include "exec/ranks/thread_ranks.h"
#include "planner/plan/deployment.h"
#include "planner/policies/common_options.h"
#include "planner/program/dependency_graph.h"
#include "planner/window/slice_bytes.h"

namespace braid::exec {
namespace {

using planner::FixedPlan;
using planner::PipelineTemplate;
using planner::Slice;
using planner::TaskIndex;

constexpr std::int64_t kSteps = 9;

struct FeedStudy {
  explicit FeedStudy(PipelineTemplate pipeline) {
    workload.backbone = costmodel::builtin_backbone("tinyllama-1.1b");
    workload.backbone.layers = 3;
    std::vector<std::vector<workload::SampleSize>> sizes;
    for (int t = 0; t < 3; ++t) {
      workload::Task& task = workload.tasks.emplace_back();
      task.name = fmt::format("t{}", t);
      task.max_length = 64;
      task.global_batch_size = 4;
      task.steps = kSteps;
      sizes.emplace_back(13, workload::SampleSize{20 + 10 * t, 5});
    }
    samples.emplace(workload.tasks, std::move(sizes));
    fixed.deployment = planner::deploy(3, 1, 3, 1);
    planner::one_task_per_htask(3, fixed);
    fixed.schedule.pipeline = pipeline;
    fixed.batching.microbatches = 2;
  }
  planner::WindowInput input() const { return {workload, *samples}; }

  workload::Workload workload;
  std::optional<workload::SampleIndex> samples;
  FixedPlan fixed;
  costmodel::Profile profile;  // of no entries
};

/// What each rank gets to run, and what it says of tasks after which window.
std::vector<std::vector<WindowPart>> fed(const FeedStudy& study, int ranks,
                                         const std::function<void(WindowFeed&, std::int64_t)>& after) {
  std::vector<std::vector<WindowPart>> parts(static_cast<std::size_t>(ranks));
  run_on_threads(ranks, [&](Communicator& communicator) {
    WindowFeed feed(study.fixed, study.input(), 0, kSteps, study.profile, communicator);
    while (std::optional<WindowPart> part = feed.next()) {
      after(feed, part->slice.window);
      parts[static_cast<std::size_t>(communicator.rank())].push_back(std::move(*part));
    }
  });
  return parts;
}

class WindowFeeds : public ::testing::TestWithParam<PipelineTemplate> {
 protected:
  bool drains() const { return GetParam() == PipelineTemplate::one_forward_one_backward; }
};

TEST_P(WindowFeeds, GiveEachRankItsPartOfTheStream) {
  const FeedStudy study(GetParam());
  for (const int ranks : {1, 3}) {
    const auto parts = fed(study, ranks, [](WindowFeed&, std::int64_t) {});
    planner::ProgramStream stream(study.fixed, study.input(), 0, kSteps);
    std::size_t window = 0;
    while (const std::optional<Slice> slice = stream.next()) {
      for (int rank = 0; rank < ranks; ++rank) {
        ASSERT_LT(window, parts[static_cast<std::size_t>(rank)].size());
        const WindowPart& part = parts[static_cast<std::size_t>(rank)][window];
        EXPECT_EQ(part.slice, rank == 0 ? *slice : planner::part_of(*slice, rank));
        EXPECT_EQ(part.ahead, planner::most_waiting_messages(slice->program));
      }
      ++window;
    }
    for (const auto& of_rank : parts) EXPECT_EQ(of_rank.size(), window);
  }
}

TEST_P(WindowFeeds, LeaveATaskOutThatIsStopped) {
  const FeedStudy study(GetParam());
  const auto parts = fed(study, 3, [](WindowFeed& feed, std::int64_t window) {
    if (window == 2) feed.stop(1);
  });
  for (const auto& of_rank : parts) {
    ASSERT_EQ(of_rank.size(), static_cast<std::size_t>(kSteps));
    for (const WindowPart& part : of_rank) {
      const bool runs = std::any_of(part.slice.steps.begin(), part.slice.steps.end(),
                                    [](const planner::WindowStep& step) { return step.task == 1; });
      if (part.slice.window <= 2) {
        EXPECT_TRUE(runs);
      }
      // A stream's next two were laid out, and up to two more for what its orders look ahead.
      if (part.slice.window > (drains() ? 2 : 6)) {
        EXPECT_FALSE(runs) << part.slice.window;
      }
    }
  }
}

TEST_P(WindowFeeds, EndWithWhatIsLaidOut) {
  const FeedStudy study(GetParam());
  const auto parts = fed(study, 3, [](WindowFeed& feed, std::int64_t window) {
    if (window == 1) feed.end();
  });
  for (const auto& of_rank : parts) {
    EXPECT_EQ(of_rank.size(), parts.front().size());
    EXPECT_LE(of_rank.size(), drains() ? 2U : 6U);
    EXPECT_TRUE(planner::is_empty(of_rank.back().slice.program.after));
  }
}

INSTANTIATE_TEST_SUITE_P(Pipelines, WindowFeeds,
                         ::testing::Values(PipelineTemplate::one_forward_one_backward, PipelineTemplate::lora_1f1b),
                         [](const auto& pipeline) {
                           return pipeline.param == PipelineTemplate::lora_1f1b ? "stream" : "drains";
                         });

}  // namespace
}  // namespace braid::exec

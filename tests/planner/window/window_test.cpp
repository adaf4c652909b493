#include "planner/window/window.h"

#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "planner/program/memory_walk.h"
#include "planner/streams.h"
#include "planner/window/program_stream.h"

namespace braid::planner {
namespace {

/// Three tasks of unlike sizes; one sample of task 1 is far longer than the rest.
struct WindowStudy {
  workload::Workload workload;
  workload::SampleIndex samples;
};

constexpr std::int64_t kLongSample = 17;

WindowStudy study() {
  workload::Workload workload;
  workload.backbone = costmodel::builtin_backbone("tinyllama-1.1b");
  workload.backbone.layers = 4;
  std::vector<std::vector<workload::SampleSize>> sizes;
  for (int t = 0; t < 3; ++t) {
    workload::Task task;
    task.name = "task" + std::to_string(t);
    task.max_length = 512;
    task.adapter = {4, 8, false, 0, {true, false, true}};
    task.global_batch_size = 3 + t;
    task.steps = 5 + 4 * t;
    task.seed = static_cast<std::uint64_t>(t);
    if (t == 2) task.optimizer.max_grad_norm = 1;
    workload.tasks.push_back(task);
    std::vector<workload::SampleSize>& mine = sizes.emplace_back();
    for (std::int64_t i = 0; i < 22; ++i) mine.push_back({8 + i, 7 + i});
    if (t == 1) mine[kLongSample] = {500, 499};
  }
  workload::SampleIndex samples(workload.tasks, std::move(sizes));
  return {std::move(workload), std::move(samples)};
}

std::vector<FixedPlan> plans() {
  std::vector<FixedPlan> plans;
  for (const bool queued : {true, false}) {
    for (const PipelineTemplate pipeline : {PipelineTemplate::gpipe, PipelineTemplate::one_forward_one_backward}) {
      for (const bool fused : {false, true}) {
        for (const int replicas : {1, 2}) {
          FixedPlan fixed;
          for (int r = 0; r < replicas; ++r) fixed.deployment.push_back({1, {{0, 2}, {2, 4}}});
          fixed.htasks = fused ? std::vector<std::vector<TaskIndex>>{{0, 2}, {1}}
                               : std::vector<std::vector<TaskIndex>>{{0}, {1}, {2}};
          for (std::size_t h = 0; h < fixed.htasks.size(); ++h) fixed.buckets.push_back({static_cast<std::int32_t>(h)});
          fixed.schedule.pipeline = pipeline;
          if (queued) queue_htasks(fixed);
          fixed.batching.microbatches = 2;
          plans.push_back(fixed);
        }
      }
    }
  }
  return plans;
}

TEST(Windows, AreGoodProgramsWhoseBoundariesChainAndTakeEveryStepOnce) {
  const WindowStudy all = study();
  const WindowInput input{all.workload, all.samples};
  for (const FixedPlan& fixed : plans()) {
    const VerifyContext context = verify_context(fixed, input, 0);
    std::vector<StageBoundary> last;
    std::set<std::tuple<StageIndex, TaskIndex, std::int64_t>> steps;
    const std::int64_t windows = window_count(fixed, input);
    for (std::int64_t window = 0; window < windows; ++window) {
      const Program program = window_program(fixed, input, window);
      ASSERT_EQ(testing::messages_of(verify(program, context)), "") << "window " << window;
      if (window > 0) {
        for (std::size_t s = 0; s < last.size(); ++s)
          EXPECT_EQ(program.before.stages[s].next_batch, last[s].next_batch) << "window " << window;
      }
      last = program.after.stages;
      for (std::size_t s = 0; s < program.stages.size(); ++s) {
        for (const Instruction& instruction : program.stages[s].instructions) {
          if (instruction.kind != Kind::step) continue;
          EXPECT_TRUE(steps.insert({static_cast<StageIndex>(s), instruction.task, instruction.global_batch}).second);
        }
      }
    }
    EXPECT_EQ(steps.size(), last.size() * (5 + 9 + 13));
  }
}

TEST(Windows, OfEndlessTasksChainToo) {
  const WindowStudy all = study();
  WindowInput input{all.workload, all.samples};
  input.cycle = kPredictedSteps;
  for (const FixedPlan& fixed : plans()) {
    std::vector<std::int64_t> next(3, 0);
    for (std::int64_t window = 0; window < 80; ++window) {
      const Program program = window_program(fixed, input, window);
      ASSERT_EQ(program.before.stages[0].next_batch, next) << "window " << window;
      next = program.after.stages[0].next_batch;
    }
  }
}

}  // namespace
}  // namespace braid::planner

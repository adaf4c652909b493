#include "exec/trainer.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include <gtest/gtest.h>

#include "exec/training.h"
#include "planner/window/program_stream.h"

namespace braid::exec {
namespace {

using planner::PipelineTemplate;
using planner::TaskIndex;

std::vector<std::vector<workload::SampleSize>> sizes_of(const TrainerStudy& study) {
  std::vector<std::vector<workload::SampleSize>> sizes;
  for (const workload::Dataset& dataset : study.datasets) sizes.push_back(workload::sample_sizes(dataset));
  return sizes;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void expect_same(const Trained& a, const Trained& b, std::size_t task) {
  ASSERT_EQ(a.steps[task].size(), b.steps[task].size()) << "task " << task;
  for (std::size_t i = 0; i < a.steps[task].size(); ++i) {
    const StepMetrics &one = a.steps[task][i], &other = b.steps[task][i];
    EXPECT_EQ(one.step, static_cast<std::int64_t>(i) + 1);
    EXPECT_EQ(other.step, one.step);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(one.loss), std::bit_cast<std::uint64_t>(other.loss)) << "task " << task;
    EXPECT_EQ(std::bit_cast<std::uint64_t>(one.gradient_norm), std::bit_cast<std::uint64_t>(other.gradient_norm));
    EXPECT_EQ(one.learning_rate, other.learning_rate);
    EXPECT_EQ(one.tokens, other.tokens);
  }
  EXPECT_TRUE(same_bits(a.adapters[task], b.adapters[task])) << "task " << task;
}

TEST(Trainer, StepsOfOneWindowAreThoseOfWindowsOfOneStep) {
  const TrainerStudy study;
  const Trained one_by_one = train_on(study, apart(PipelineTemplate::one_forward_one_backward, 1));
  for (std::size_t task = 0; task < 4; ++task) EXPECT_EQ(one_by_one.steps[task].size(), 6 - task);
  for (const PipelineTemplate pipeline : {PipelineTemplate::lora_1f1b, PipelineTemplate::lora_gpipe}) {
    const Trained together = train_on(study, apart(pipeline, 4));
    for (std::size_t task = 0; task < 4; ++task) expect_same(together, one_by_one, task);
  }
}

TEST(Trainer, TasksThatComeAndGoLearnWhatTheyLearnAlone) {
  const TrainerStudy study;
  const Trained one_by_one = train_on(study, apart(PipelineTemplate::one_forward_one_backward, 1));
  for (const PipelineTemplate pipeline : {PipelineTemplate::lora_1f1b, PipelineTemplate::lora_gpipe}) {
    planner::FixedPlan fixed = apart(pipeline, 2);
    // Task 3 stops for a window in the middle, task 2 comes late.
    fixed.schedule.admissions = {{1, {0, 1, 3}}, {1, {0, 1, 2}}, {1, {0, 1, 2, 3}}};
    const Trained together = train_on(study, fixed);
    for (std::size_t task = 0; task < 4; ++task) expect_same(together, one_by_one, task);
  }
}

/// Packed rows, padding, chunks, dropout and clipping by kernels written to be read, on two stages.
TEST(Trainer, TheReferenceDeviceLearnsWhatTheCpuDoes) {
  const TrainerStudy study;
  planner::FixedPlan fixed = apart(PipelineTemplate::lora_1f1b, 2);
  fixed.deployment = {{1, {{0, 1}, {1, 2}}}};
  const Trained fast = train_on(study, fixed), simple = train_on(study, fixed, kernels::make_reference_device);
  for (std::size_t task = 0; task < 4; ++task) {
    ASSERT_EQ(fast.steps[task].size(), simple.steps[task].size());
    for (std::size_t i = 0; i < fast.steps[task].size(); ++i)
      EXPECT_NEAR(fast.steps[task][i].loss / simple.steps[task][i].loss, 1, 1e-5) << task << " " << i;
  }
}

/// Two stages on two ranks compute what one computes, to the bit: a sum is only cut where a layer ends.
TEST(Trainer, StagesOnRanksOfTheirOwnLearnWhatOneLearns) {
  const TrainerStudy study, bad(kDivergingRate);
  const planner::FixedPlan one = apart(PipelineTemplate::one_forward_one_backward, 1);
  const Trained alone = train_on(study, one), diverged = train_on(bad, one);
  for (const PipelineTemplate pipeline : {PipelineTemplate::one_forward_one_backward, PipelineTemplate::gpipe,
                                          PipelineTemplate::lora_1f1b, PipelineTemplate::lora_gpipe}) {
    for (const std::int64_t steps_per_window : {1, 3}) {
      planner::FixedPlan fixed = apart(pipeline, steps_per_window);
      fixed.deployment = {{1, {{0, 1}, {1, 2}}}};
      const Trained together = train_on(study, fixed);
      for (std::size_t task = 0; task < 4; ++task) expect_same(together, alone, task);
      const Trained with_bad = train_on(bad, fixed);
      EXPECT_EQ(with_bad.diverged, std::set<TaskIndex>{1});
      for (const std::size_t task : {0, 2, 3}) expect_same(with_bad, diverged, task);
    }
  }
}

TEST(Trainer, ATaskThatDivergesInMidWindowTakesNoFurtherStepAndTheOthersAllOfTheirs) {
  const TrainerStudy good, bad(kDivergingRate);
  const Trained undisturbed = train_on(good, apart(PipelineTemplate::lora_gpipe, 4));
  const Trained together = train_on(bad, apart(PipelineTemplate::lora_gpipe, 4));
  const Trained one_by_one = train_on(bad, apart(PipelineTemplate::one_forward_one_backward, 1));
  EXPECT_EQ(together.diverged, std::set<TaskIndex>{1});
  EXPECT_EQ(together.steps[1].size(), 2U);
  EXPECT_FALSE(std::isfinite(together.steps[1].back().loss));
  EXPECT_TRUE(std::isfinite(together.steps[1].front().loss));
  for (std::size_t task = 0; task < 4; ++task) expect_same(together, one_by_one, task);
  for (const std::size_t task : {0, 2, 3}) expect_same(together, undisturbed, task);
}

TEST(Trainer, AskedToStopItEndsWithWhatIsUnderWayAndTheTimelineIsWhole) {
  TrainerStudy study;
  for (workload::Task& task : study.workload.tasks) task.steps = 40;
  study.samples.emplace(study.workload.tasks, sizes_of(study));
  const planner::FixedPlan fixed = apart(PipelineTemplate::lora_1f1b, 2);
  const std::unique_ptr<Communicator> communicator = make_local_communicator();
  Runner runner({fixed, study.workload, *study.samples, study.datasets}, *communicator, cpu_device());
  planner::Plan plan;
  plan.workload = study.workload;
  plan.fixed = fixed;
  std::atomic<bool> stop = false;
  std::vector<std::int64_t> steps(4, 0);
  TrainOptions options;
  options.stop = &stop;
  options.on_window = [&](const WindowReport& report) {
    stop = report.window >= 3;
    for (const StepMetrics& step : report.steps) EXPECT_EQ(step.step, ++steps[static_cast<std::size_t>(step.task)]);
  };
  const TrainResult result = train(plan, *study.samples, runner, *communicator, options);
  EXPECT_TRUE(result.interrupted);
  EXPECT_LE(*std::max_element(steps.begin(), steps.end()), 2 * 9);
  EXPECT_EQ(runner.model(0).live(), 0U);
  EXPECT_EQ(runner.pool().in_use(), 0);
  for (const RecordedWindow& recorded : result.recorded)
    EXPECT_EQ(recorded.timeline.events.size(), recorded.program.instruction_count());
}

TEST(Trainer, HTasksOfOneBucketLearnInOneInstructionWhatEachLearnsAlone) {
  const TrainerStudy study;
  const Trained alone = train_on(study, apart(PipelineTemplate::one_forward_one_backward, 1));
  planner::FixedPlan fixed = apart(PipelineTemplate::structured, 1);
  fixed.buckets = {{0, 3}, {1, 2}};
  fixed.schedule.order = {{{false, 1, 0}, {false, 0, 0}, {false, 1, 1}, {true, 1, 0}, {true, 0, 0}, {true, 1, 1}}};
  const planner::Program program = planner::window_program(fixed, {study.workload, *study.samples}, 0);
  EXPECT_TRUE(std::any_of(program.stages[0].instructions.begin(), program.stages[0].instructions.end(),
                          [](const planner::Instruction& instruction) { return instruction.parts.count == 2; }));
  const Trained together = train_on(study, fixed);
  for (std::size_t task = 0; task < 4; ++task) expect_same(together, alone, task);
}

TEST(Trainer, ChunksTrainAsRowsDo) {
  const TrainerStudy study;
  const planner::FixedPlan rows = apart(PipelineTemplate::one_forward_one_backward, 1);
  const Trained one = train_on(study, rows);
  planner::FixedPlan chunks = rows;
  for (const std::int64_t chunk_size : {16, 32, 48}) {  // 48 cuts no sample
    chunks.batching.chunk_size = chunk_size;
    for (const bool skips_padding : {false, true}) {
      chunks.batching.skips_padding = skips_padding;
      const Trained other = train_on(study, chunks);
      for (std::size_t task = 0; task < 4; ++task) {
        ASSERT_EQ(one.steps[task].size(), other.steps[task].size());
        for (std::size_t i = 0; i < one.steps[task].size(); ++i)
          EXPECT_NEAR(one.steps[task][i].loss, other.steps[task][i].loss, 1e-4 * one.steps[task][i].loss)
              << task << " in chunks of " << chunk_size;
      }
    }
  }
}

TEST(Trainer, ChunksOfSeveralHTasksShareAPipeline) {
  const TrainerStudy study;
  const Trained alone = train_on(study, apart(PipelineTemplate::one_forward_one_backward, 1));
  planner::FixedPlan fixed = apart(PipelineTemplate::gpipe, 1);
  fixed.htasks = {{0, 1}, {2, 3}};
  fixed.buckets = {{0}, {1}};
  fixed.batching.chunk_size = 16;
  fixed.batching.pack_length = 64;
  const Trained together = train_on(study, fixed);
  for (std::size_t task = 0; task < 4; ++task) {
    ASSERT_EQ(alone.steps[task].size(), together.steps[task].size());
    for (std::size_t i = 0; i < alone.steps[task].size(); ++i)
      EXPECT_NEAR(alone.steps[task][i].loss, together.steps[task][i].loss, 1e-4 * alone.steps[task][i].loss) << task;
  }
}

}  // namespace
}  // namespace braid::exec

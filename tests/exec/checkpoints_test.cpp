#include "exec/checkpoints.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/file.h"
#include "exec/training.h"
#include "planner/window/unit_stream.h"

namespace braid::exec {
namespace {

class Checkpointed : public ::testing::Test {
 protected:
  void SetUp() override {
    folder = std::filesystem::temp_directory_path() / ("braid-checkpoints-" + std::to_string(::getpid()) + "-" +
                                                       ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  Trained run(const planner::FixedPlan& fixed, RunPart part) {
    part.folder = folder;
    part.data_hashes = data_hashes;
    Trained trained = train_on(study, fixed, kernels::make_cpu_device, {}, &part);
    notices = part.notices;
    return trained;
  }
  /// Two parts of a run as one.
  static Trained joined(Trained first, const Trained& second) {
    for (std::size_t task = 0; task < first.steps.size(); ++task)
      first.steps[task].insert(first.steps[task].end(), second.steps[task].begin(), second.steps[task].end());
    first.adapters = second.adapters;
    return first;
  }
  std::filesystem::path newest() const {
    std::filesystem::path found;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (found.empty() || std::stoi(entry.path().filename()) > std::stoi(found.filename())) found = entry.path();
    return found;
  }

  TrainerStudy study;
  std::filesystem::path folder;
  std::vector<std::pair<std::string, std::string>> data_hashes;
  std::vector<std::string> notices;
};

planner::FixedPlan on(PipelineTemplate pipeline, std::int64_t tp, std::int64_t pp, std::int64_t replicas) {
  planner::FixedPlan fixed = two_layers_on(tp, pp, replicas);
  fixed.schedule.pipeline = pipeline;
  return fixed;
}

/// Wherever a run stops and goes on, on its own plan, it ends as if it had not: to the bit where the pipeline drains,
/// and where windows run as one stream to the order of sums.
TEST_F(Checkpointed, ARunThatGoesOnEndsAsIfItHadNotStopped) {
  for (const planner::FixedPlan& fixed :
       {on(PipelineTemplate::one_by_one, 1, 1, 1), on(PipelineTemplate::one_by_one, 1, 2, 1),
        on(PipelineTemplate::one_by_one, 1, 1, 2), on(PipelineTemplate::one_forward_one_backward, 1, 2, 1)}) {
    const Trained whole = train_on(study, fixed);
    for (const std::int64_t windows : {1, 3}) {
      std::filesystem::remove_all(folder);
      const Trained first = run(fixed, {{}, windows});
      const Trained second = run(fixed, {});
      ASSERT_LT(first.steps[0].size(), 6U) << "a stream goes on for two windows";
      const Trained both = joined(first, second);
      const std::string what = fmt::format("{} ranks, stopped after {}", fixed.ranks(), windows);
      expect_near(both, whole, 1e-5, what);
      if (!planner::streams(fixed)) {
        for (std::size_t task = 0; task < 4; ++task) EXPECT_EQ(both.adapters[task], whole.adapters[task]) << what;
      }
    }
  }
}

/// Onto other stages, shards, replicas and windows, from which the tasks' steps are not the plan's own.
TEST_F(Checkpointed, ARunGoesOnOnAnyPlan) {
  planner::FixedPlan longer = on(PipelineTemplate::one_by_one, 1, 1, 1);
  longer.schedule.steps_per_window = 2;
  const planner::FixedPlan begun = on(PipelineTemplate::one_by_one, 1, 1, 1);
  const Trained whole = train_on(study, begun);
  for (const planner::FixedPlan& fixed :
       {on(PipelineTemplate::one_forward_one_backward, 1, 2, 1), on(PipelineTemplate::one_by_one, 2, 1, 1),
        on(PipelineTemplate::one_by_one, 1, 1, 2), longer}) {
    std::filesystem::remove_all(folder);
    const Trained first = run(begun, {{}, 3});
    expect_near(joined(first, run(fixed, {})), whole, 1e-5, fmt::format("{} ranks", fixed.ranks()));
  }
}

/// Steps of a checkpoint that was written on the way, by whose state alone the run goes on.
TEST_F(Checkpointed, StateIsKeptOnTheWay) {
  const planner::FixedPlan fixed = on(PipelineTemplate::one_by_one, 1, 2, 1);
  const Trained whole = run(fixed, {{}, 100, 2});
  // After 2, 4 and 6 steps: the two newest are there.
  ASSERT_EQ(newest().filename(), "3");
  EXPECT_FALSE(std::filesystem::exists(folder / "1"));
  std::filesystem::remove_all(folder / "3");
  const Trained again = run(fixed, {});
  EXPECT_EQ(again.steps[0].size(), 2U);
  for (std::size_t task = 0; task < 4; ++task) EXPECT_EQ(again.adapters[task], whole.adapters[task]) << task;
}

/// Of a device that runs later than it is called, too, what is kept is what the steps left behind.
TEST_F(Checkpointed, NothingIsKeptTooEarly) {
  const planner::FixedPlan fixed = on(PipelineTemplate::one_forward_one_backward, 1, 2, 1);
  const Trained whole = train_on(study, fixed, kernels::make_reference_device);
  for (const bool groups : {false, true}) {
    std::filesystem::remove_all(folder);
    RunPart kept{folder, 2, 1};
    const Trained first = train_on(
        study, fixed, [&] { return make_late_device(3, groups); }, {}, &kept);
    RunPart rest{folder};
    const Trained second = train_on(study, fixed, kernels::make_reference_device, {}, &rest);
    ASSERT_FALSE(second.steps[0].empty());
    expect_near(joined(first, second), whole, 1e-6, "late");
  }
}

TEST_F(Checkpointed, OneThatIsNotWholeIsPassedOver) {
  const planner::FixedPlan fixed = on(PipelineTemplate::one_by_one, 1, 1, 1);
  const Trained whole = train_on(study, fixed);
  for (const std::string broken : {"cut", "changed", "no manifest", "no json", "no file"}) {
    std::filesystem::remove_all(folder);
    run(fixed, {{}, 3, 1});  // and one more, as a run stops a window later
    const std::filesystem::path state = newest() / "task2.safetensors", manifest = newest() / "checkpoint.json";
    if (broken == "cut") std::filesystem::resize_file(state, std::filesystem::file_size(state) - 7);
    if (broken == "changed") std::fstream(state, std::ios::in | std::ios::out | std::ios::binary).seekp(400) << 'x';
    if (broken == "no manifest") std::filesystem::remove(manifest);
    if (broken == "no json") std::filesystem::resize_file(manifest, 50);
    if (broken == "no file") std::filesystem::remove(state);
    const Trained again = run(fixed, {});
    EXPECT_EQ(notices.empty(), broken == "no manifest") << broken;
    for (const std::string& notice : notices)
      EXPECT_NE(notice.find("is not what was written; the checkpoint before it is taken"), std::string::npos) << notice;
    EXPECT_EQ(again.steps[0].size(), 3U) << broken;
    for (std::size_t task = 0; task < 4; ++task) EXPECT_EQ(again.adapters[task], whole.adapters[task]) << broken;
  }
}

TEST_F(Checkpointed, AsManyStayAsAreAskedFor) {
  for (const std::int64_t kept : {1, 2, 4}) {
    std::filesystem::remove_all(folder);
    RunPart part{folder, 5, 1};
    part.checkpoints_kept = kept;
    train_on(study, on(PipelineTemplate::one_by_one, 1, 1, 1), kernels::make_cpu_device, {}, &part);
    const auto all = std::filesystem::directory_iterator(folder);
    EXPECT_EQ(std::distance(begin(all), end(all)), kept);
  }
}

TEST_F(Checkpointed, WhatWouldTakeOtherStepsIsRefused) {
  const planner::FixedPlan fixed = on(PipelineTemplate::one_by_one, 1, 1, 1);
  const std::string weights = (study.workload.backbone_folder / "model.safetensors").string();
  data_hashes = {{weights, "1"}};
  run(fixed, {{}, 2});
  data_hashes = {{weights, "2"}};
  expect_error([&] { run(fixed, {}); }, "is of another backbone than", "go on with the one");
  data_hashes = {{weights, "1"}};
  study.workload.tasks[1].seed = 77;
  expect_error([&] { run(fixed, {}); }, "the seed of task task1 has changed since",
               "begin the task anew under another");
  study.workload.tasks[1].seed = 1;
  workload::Task& task = study.workload.tasks[3];
  const workload::Task as_it_was = task;
  const auto refused = [&](const std::string& what) {
    expect_error([&] { run(fixed, {}); }, "the " + what + " of task task3 has changed since", "change it back");
    task = as_it_was;
  };
  task.adapter.rank = 8;
  refused("adapter");
  // Of as many numbers as before.
  task.adapter.alpha *= 2;
  refused("adapter");
  std::swap(task.adapter.targets[static_cast<std::size_t>(costmodel::Module::k)],
            task.adapter.targets[static_cast<std::size_t>(costmodel::Module::v)]);
  if (task != as_it_was) refused("adapter");
  task.on_too_long = workload::OnTooLong::drop;
  refused("on_too_long");
  task.evaluation.emplace().fraction = 0.5;
  refused("evaluation fraction");
}

TEST_F(Checkpointed, WhereNothingCanBeWrittenTheRunGoesOn) {
  write_file(folder, "a file");
  const planner::FixedPlan fixed = on(PipelineTemplate::one_by_one, 1, 2, 1);
  const Trained trained = run(fixed, {{}, 100, 3});
  EXPECT_EQ(trained.adapters, train_on(study, fixed).adapters);
  ASSERT_EQ(notices.size(), 2U);
  EXPECT_NE(notices[0].find("cannot be made"), std::string::npos) << notices[0];
  EXPECT_NE(notices[0].find("the run goes on"), std::string::npos) << notices[0];
}

/// One that diverged does not begin again, and the others go on.
TEST_F(Checkpointed, ATaskThatDivergedStaysSo) {
  study = TrainerStudy(kDivergingRate);
  const planner::FixedPlan fixed = on(PipelineTemplate::one_by_one, 1, 1, 1);
  const Trained whole = train_on(study, fixed);
  ASSERT_EQ(whole.diverged, std::set<TaskIndex>{1});
  run(fixed, {{}, 3});
  const Trained again = run(fixed, {});
  EXPECT_EQ(again.diverged, std::set<TaskIndex>{1});
  EXPECT_TRUE(again.steps[1].empty());
  for (const std::size_t task : {0U, 2U, 3U}) EXPECT_EQ(again.adapters[task], whole.adapters[task]) << task;
}

/// A task that is cancelled keeps what it learned until then, the others learn what they learn in any case, and whoever
/// goes on does not begin it again.
TEST_F(Checkpointed, ACancelledTaskEndsAndTheOthersGoOn) {
  for (const planner::FixedPlan& fixed :
       {on(PipelineTemplate::one_by_one, 1, 1, 1), on(PipelineTemplate::one_forward_one_backward, 1, 2, 1)}) {
    std::filesystem::remove_all(folder);
    const Trained whole = train_on(study, fixed);
    RunPart part{{}, 3};
    part.cancel = 1;
    const Trained first = run(fixed, part);
    EXPECT_EQ(first.ended, (EndedTasks{{1, Ended::cancelled}}));
    ASSERT_FALSE(first.steps[1].empty());
    EXPECT_LT(first.steps[1].size(), whole.steps[1].size());
    const Trained second = run(fixed, {});
    EXPECT_EQ(second.ended, (EndedTasks{{1, Ended::cancelled}}));
    EXPECT_TRUE(second.steps[1].empty());
    EXPECT_EQ(second.adapters[1], first.adapters[1]);
    for (const std::size_t task : {0U, 2U, 3U}) {
      ASSERT_EQ(first.steps[task].size() + second.steps[task].size(), whole.steps[task].size());
      const std::vector<StepMetrics>& last = second.steps[task].empty() ? first.steps[task] : second.steps[task];
      EXPECT_NEAR(last.back().loss / whole.steps[task].back().loss, 1, 1e-5) << task;
    }
  }
}

}  // namespace
}  // namespace braid::exec

#include "exec/profiling/pilot.h"

#include <optional>

#include <gtest/gtest.h>

#include "exec/devices.h"
#include "planner/policies/common_options.h"
#include "sim/replay.h"
#include "support.h"

namespace braid::exec {
namespace {

/// Two tasks in turn, the second of pairs, eight windows of four microbatches, on the golden backbone; predicted as on
/// some GPU.
struct PilotStudy {
  PilotStudy() {
    plan.workload.backbone_folder = golden("llama");
    plan.workload.backbone = costmodel::read_backbone(plan.workload.backbone_folder);
    std::vector<std::vector<workload::SampleSize>> sizes;
    for (std::int32_t t = 0; t < 2; ++t) {
      workload::Task& task = plan.workload.tasks.emplace_back();
      task.max_length = 24;
      task.adapter = {4, 8, false, 0.0, {true, false, true}};
      task.global_batch_size = 8;
      task.steps = 4;
      if (t == 1) task.objective.kind = workload::ObjectiveKind::dpo;
      workload::Dataset& dataset = datasets.emplace_back();
      for (std::int32_t i = 0; i < 8; ++i) {
        workload::Sample& sample = dataset.samples.emplace_back();
        for (std::int32_t place = 0; place < 12 + i; ++place) sample.append((7 * i + 3 * place) % 150, true);
        if (t == 1) sample = workload::pair_of(sample, sample);
      }
      sizes.push_back(workload::sample_sizes(dataset));
    }
    plan.fixed.deployment.push_back({1, {{0, 2}}});
    planner::one_task_per_htask(2, plan.fixed);
    planner::queue_htasks(plan.fixed);
    plan.fixed.batching.microbatches = 4;
    plan.profile = costmodel::analytic_profile("a40", costmodel::DataType::f32);
    samples.emplace(plan.workload.tasks, std::move(sizes));
  }

  Pilot run(double seconds) const {
    const auto communicator = make_local_communicator();
    const planner::Judge judge = [](const planner::Program& program, const planner::Durations& durations) {
      return sim::replay(program, durations);
    };
    return run_pilot(plan, *samples, datasets, judge, seconds, *communicator, cpu_device());
  }

  planner::Plan plan;
  std::vector<workload::Dataset> datasets;
  std::optional<workload::SampleIndex> samples;
};

TEST(PilotRun, RunsWholeWindowsWhereThereIsTime) {
  const Pilot pilot = PilotStudy().run(60);
  EXPECT_EQ(pilot.windows, 4);
  EXPECT_EQ(pilot.microbatches, 16);
  EXPECT_GE(pilot.runs, 5);
  EXPECT_LE(pilot.runs, 40);
  EXPECT_GT(pilot.predicted_seconds, 0);
  EXPECT_GT(pilot.measured_seconds, 0);
}

TEST(PilotRun, RunsFewerMicrobatchesWhereTimeIsShort) {
  const PilotStudy study;
  const double whole = study.run(60).predicted_seconds;
  // A quarter of the time is for one run.
  const Pilot part = study.run(4 * 0.6 * whole);
  EXPECT_LT(part.microbatches, 16);
  EXPECT_GE(part.microbatches, part.windows);
  EXPECT_GE(part.runs, 1);
  EXPECT_LE(part.predicted_seconds, 0.6 * whole);
}

TEST(PilotRun, RunsNothingThatDoesNotFit) {
  const Pilot none = PilotStudy().run(1e-9);
  EXPECT_EQ(none.runs, 0);
  EXPECT_EQ(none.microbatches, 0);
}

}  // namespace
}  // namespace braid::exec

#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "exec/training.h"

namespace braid::exec {
namespace {

/// Some of the study's tasks, on stages or replicas.
planner::FixedPlan of_tasks(std::vector<std::vector<TaskIndex>> htasks, std::int64_t pp, std::int64_t replicas) {
  planner::FixedPlan fixed = two_layers_on(1, pp, replicas);
  fixed.schedule.pipeline = PipelineTemplate::one_by_one;
  fixed.buckets.clear();
  for (std::size_t h = 0; h < htasks.size(); ++h) fixed.buckets.push_back({static_cast<std::int32_t>(h)});
  fixed.htasks = std::move(htasks);
  return fixed;
}

/// A run goes over from one plan to the next after two windows each, the last one to its end: ranks keep the layers
/// that they hold, tasks come and wait, and at the end all are what they are without, to the byte.
TEST(Changed, ARunGoesOverToOtherPlansWithTheLayersThatItHolds) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("braid-changed-" + std::to_string(::getpid()));
  std::filesystem::remove_all(folder);
  TrainerStudy study;
  study.workload.reproducible = true;
  const Trained whole = train_on(study, apart(PipelineTemplate::one_by_one, 1));
  const std::vector<planner::FixedPlan> plans = {of_tasks({{0}, {1}}, 2, 1), of_tasks({{0}, {1}, {2}}, 2, 1),
                                                 of_tasks({{1}, {3}}, 1, 2), of_tasks({{0, 1, 2, 3}}, 2, 1)};
  const std::vector<std::int64_t> loaded = {1, 0, 1, 0};  // layers, of each rank
  std::vector<std::vector<std::vector<float>>> parts(2);
  run_on_threads(2, [&](Communicator& communicator) {
    workload::SampleIndex samples = *study.samples;
    const std::unique_ptr<kernels::Device> device = kernels::make_cpu_device();
    HeldBackbone held;
    std::vector<std::int64_t> taken;
    for (std::size_t p = 0; p < plans.size(); ++p) {
      planner::Plan plan;
      plan.workload = study.workload;
      plan.fixed = plans[p];
      plan.taken = taken;
      Runner runner({plan.fixed, study.workload, samples, study.datasets}, communicator, *device, std::move(held));
      EXPECT_EQ(runner.loaded_layers(), loaded[p]) << p;
      for (TaskIndex task = 0; task < 4; ++task)
        EXPECT_EQ(runner.adapters()[static_cast<std::size_t>(task)] != nullptr, plan.fixed.tasks().contains(task));
      Checkpoints checkpoints(folder, plan);
      const std::optional<Checkpoint> begun = checkpoints.newest();
      communicator.barrier();
      TrainOptions options;
      options.checkpoints = &checkpoints;
      if (begun) options.begun = &*begun;
      int asked = 0;
      options.change = [&] { return p + 1 < plans.size() && ++asked == 2; };
      const TrainResult result = train(plan, samples, runner, communicator, options);
      EXPECT_EQ(result.changes, p + 1 < plans.size());
      taken = result.taken;
      if (p + 1 == plans.size())
        for (const std::unique_ptr<Adapter>& adapter : runner.adapters())
          parts[static_cast<std::size_t>(communicator.rank())].push_back(adapter->parameters_on_host());
      held = std::move(runner).release_backbone();
    }
    for (TaskIndex task = 0; task < 4; ++task)
      EXPECT_EQ(taken[static_cast<std::size_t>(task)], samples.steps(task)) << task;
  });
  for (std::size_t task = 0; task < 4; ++task) {
    std::vector<float> adapter = parts[0][task];
    adapter.insert(adapter.end(), parts[1][task].begin(), parts[1][task].end());
    EXPECT_TRUE(adapter == whole.adapters[task]) << task;
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace braid::exec

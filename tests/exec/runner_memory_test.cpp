#include <gtest/gtest.h>

#include "costmodel/profile/memory_fit.h"
#include "exec/devices.h"
#include "exec/example/example.h"
#include "exec/ranks/thread_ranks.h"
#include "exec/runner.h"
#include "planner/plan/deployment.h"
#include "planner/program/memory_walk.h"
#include "planner/window/program_stream.h"
#include "support.h"

namespace braid::exec {
namespace {

/// The example's four tasks, with their data.
struct PoolStudy {
  explicit PoolStudy(const std::filesystem::path& folder)
      : PoolStudy((write_example(folder, 1), with_small_batches(workload::read_workload(folder / "workload.yaml")))) {}
  explicit PoolStudy(workload::Workload of)
      : workload(std::move(of)), datasets(datasets_of(workload)), samples(workload.tasks, sizes_of(datasets)) {}

  workload::Workload workload;
  std::vector<workload::Dataset> datasets;
  workload::SampleIndex samples;

 private:
  static workload::Workload with_small_batches(workload::Workload workload) {
    for (workload::Task& task : workload.tasks) task.global_batch_size = 4;
    return workload;
  }
  static std::vector<workload::Dataset> datasets_of(const workload::Workload& workload) {
    const auto tokenizer = workload::make_tokenizer(workload.backbone_folder, workload.backbone);
    std::vector<workload::Dataset> datasets;
    for (const workload::Task& task : workload.tasks)
      datasets.push_back(
          workload::load_dataset(task.dataset, task, *tokenizer, workload.backbone, workload.backbone_folder));
    return datasets;
  }
  static std::vector<std::vector<workload::SampleSize>> sizes_of(const std::vector<workload::Dataset>& datasets) {
    std::vector<std::vector<workload::SampleSize>> sizes;
    for (const workload::Dataset& dataset : datasets) sizes.push_back(workload::sample_sizes(dataset));
    return sizes;
  }
};

planner::FixedPlan plan(std::vector<std::vector<planner::TaskIndex>> htasks, planner::PipelineTemplate pipeline,
                        std::int64_t microbatches, bool padded) {
  planner::FixedPlan fixed;
  fixed.deployment.push_back({1, {{0, 4}}});
  fixed.htasks = std::move(htasks);
  for (std::size_t h = 0; h < fixed.htasks.size(); ++h) fixed.buckets.push_back({static_cast<std::int32_t>(h)});
  fixed.schedule.pipeline = pipeline;
  fixed.batching.microbatches = microbatches;
  fixed.batching.padding = padded ? planner::Padding::max_length : planner::Padding::none;
  return fixed;
}

TEST(Runner, ItsPoolLendsAtMostWhatTheWalkOverTheProgramSays) {
  const TestFolder folder;
  const PoolStudy study(folder.path());
  using enum planner::PipelineTemplate;
  planner::FixedPlan streamed = plan({{0}, {1}, {2}, {3}}, lora_gpipe, 2, false);
  streamed.schedule.steps_per_window = 3;
  planner::FixedPlan chunks = plan({{0}, {1}, {2, 3}}, gpipe, 2, true), fine = plan({{0, 1, 2, 3}}, gpipe, 4, true);
  chunks.batching.chunk_size = 32;
  fine.batching.chunk_size = 16;
  planner::FixedPlan of_rows = fine;
  of_rows.batching.padding = planner::Padding::none;
  of_rows.batching.skips_padding = true;
  for (const planner::FixedPlan& fixed :
       {plan({{0}, {1}, {2}, {3}}, one_forward_one_backward, 2, false), plan({{0, 1, 2, 3}}, gpipe, 3, false),
        plan({{0, 1}, {2, 3}}, gpipe, 2, true), streamed, chunks, fine, of_rows}) {
    const std::unique_ptr<Communicator> communicator = make_local_communicator();
    Runner runner({fixed, study.workload, study.samples, study.datasets}, *communicator, cpu_device());
    const planner::Program program = planner::window_program(fixed, {study.workload, study.samples}, 0);
    const planner::StageMemory memory =
        planner::walk_memory(program, {study.workload.backbone, planner::adapters_of(study.workload), {}, 1}).front();
    runner.run(program);
    // Buffers begin on cache lines.
    const Bytes rounding = memory.activations / 500;
    EXPECT_GE(runner.pool().peak(), memory.activations);
    EXPECT_LE(runner.pool().peak(), memory.activations + rounding);
    EXPECT_EQ(runner.pool().in_use(), 0);
  }
}

/// Of every rank, whatever it computes again and however its layers are split.
TEST(Runner, PoolsOfShardsAndOfRecomputedLayersLendWhatTheWalkSays) {
  const TestFolder folder;
  const PoolStudy study(folder.path());
  using costmodel::RecomputeKind;
  planner::FixedPlan whole = plan({{0}, {1}, {2, 3}}, planner::PipelineTemplate::gpipe, 2, true);
  planner::FixedPlan chunks = whole;
  chunks.batching.chunk_size = 32;
  using Places = std::pair<std::int64_t, std::int64_t>;  // tp, pp
  for (const planner::FixedPlan& plain : {whole, chunks}) {
    for (const RecomputeKind kind : {RecomputeKind::none, RecomputeKind::selective, RecomputeKind::full}) {
      const std::vector<Places> places =
          kind == RecomputeKind::full ? std::vector<Places>{{1, 1}, {2, 2}} : std::vector<Places>{{1, 1}};
      for (const auto& [tp, pp] : places) {
        planner::FixedPlan fixed = plain;
        fixed.deployment = planner::deploy(4, tp, pp, 1);
        if (kind != RecomputeKind::none)
          fixed.deployment[0].recompute.assign(static_cast<std::size_t>(pp), {kind, 4 / pp - (pp == 1 ? 1 : 0)});
        const planner::Program program = planner::window_program(fixed, {study.workload, study.samples}, 0);
        const std::vector<planner::StageMemory> memory =
            planner::walk_memory(program, {study.workload.backbone, planner::adapters_of(study.workload), {}, 1});
        run_on_threads(fixed.ranks(), [&](Communicator& communicator) {
          workload::SampleIndex samples = study.samples;  // one thread's
          Runner runner({fixed, study.workload, samples, study.datasets}, communicator, cpu_device());
          runner.run(program);
          const planner::StageMemory& expected = memory[static_cast<std::size_t>(runner.stage())];
          const double peak = static_cast<double>(runner.pool().peak());
          EXPECT_LE(peak, 1.01 * static_cast<double>(expected.activations + expected.messages))
              << tp << " " << pp << " " << name(kind);
          // Messages may come later, and keys of padding are not kept.
          const double least = fixed.batching.chunk_size > 0 ? 0.97 : 0.99;
          EXPECT_GE(peak, least * static_cast<double>(expected.activations)) << tp << " " << pp << " " << name(kind);
          EXPECT_EQ(runner.pool().in_use(), 0);
        });
      }
    }
  }
}

/// What a run of the example's first task takes from its pool where every row has `length` tokens.
Bytes measured_peak(const workload::Workload& example, std::int64_t batch, std::int64_t length) {
  workload::Workload alone = example;
  alone.tasks.resize(1);
  alone.tasks[0].global_batch_size = batch;
  alone.tasks[0].max_length = length;
  alone.tasks[0].on_too_long = workload::OnTooLong::drop;
  const PoolStudy study(std::move(alone));
  const planner::FixedPlan fixed = plan({{0}}, planner::PipelineTemplate::one_forward_one_backward, 1, true);
  const std::unique_ptr<Communicator> communicator = make_local_communicator();
  Runner runner({fixed, study.workload, study.samples, study.datasets}, *communicator, cpu_device());
  runner.run(planner::window_program(fixed, {study.workload, study.samples}, 0));
  return runner.pool().peak();
}

/// mLoRA Eq. 5 on line: from the first three batches of a run on, those to come are told.
TEST(Runner, ItsMemoryTeachesWhatLargerBatchesWillTake) {
  const TestFolder folder;
  write_example(folder.path(), 1);
  const workload::Workload example = workload::read_workload(folder / "workload.yaml");
  costmodel::MemoryLearner learner;
  for (const auto& [batch, length] : std::vector<std::pair<std::int64_t, std::int64_t>>{{2, 48}, {6, 48}, {3, 96}})
    learner.add({batch, length, measured_peak(example, batch, length)});
  const costmodel::MemoryFit fit = learner.fit();
  EXPECT_LT(fit.worst_error, 0.02);
  for (const auto& [batch, length] : std::vector<std::pair<std::int64_t, std::int64_t>>{{4, 64}, {9, 96}, {12, 128}}) {
    const auto measured = static_cast<double>(measured_peak(example, batch, length));
    EXPECT_NEAR(fit.bytes(batch, length) / measured, 1, 0.02) << batch << " x " << length;
    EXPECT_GE(learner.most(batch, length, 0.02).value(), measured);
  }
}

}  // namespace
}  // namespace braid::exec

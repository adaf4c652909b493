#include <gtest/gtest.h>

#include "exec/training.h"
#include "planner/window/unit_stream.h"

namespace braid::exec {
namespace {

/// The study's tasks, of which the last drops, in a run whose sums are exact.
TrainerStudy reproducible_study() {
  TrainerStudy study;
  study.workload.reproducible = true;
  return study;
}

/// All tasks in microbatches of each other, in packs cut into chunks.
planner::FixedPlan in_chunks(std::int64_t tokens, std::int64_t pp) {
  planner::FixedPlan fixed = two_layers_on(1, pp, 1);
  fixed.htasks = {{0, 1, 2, 3}};
  fixed.buckets = {{0}};
  fixed.batching.padding = planner::Padding::none;
  fixed.batching.chunk_size = tokens;
  return fixed;
}

/// To the byte: on stages and replicas, in however many microbatches, padded, packed and cut into chunks, in pipelines
/// that drain and that do not.
TEST(Reproducible, AdaptersAreTheSameHoweverTokensComeTogether) {
  const TrainerStudy study = reproducible_study();
  const Trained one = train_on(study, apart(PipelineTemplate::one_by_one, 1));
  std::vector<std::pair<std::string, planner::FixedPlan>> plans;
  for (const std::int64_t microbatches : {1, 2, 3}) {
    plans.emplace_back(fmt::format("{} microbatches", microbatches), apart(PipelineTemplate::one_by_one, 2));
    plans.back().second.batching.microbatches = microbatches;
  }
  for (const std::int64_t pp : {1, 2}) {
    plans.emplace_back(fmt::format("{} stages", pp), two_layers_on(1, pp, 1));
    plans.emplace_back(fmt::format("{} stages, unpadded", pp), two_layers_on(1, pp, 1));
    plans.back().second.batching.padding = planner::Padding::none;
    plans.emplace_back(fmt::format("{} stages, two replicas", pp), two_layers_on(1, pp, 2));
    plans.back().second.schedule.pipeline = PipelineTemplate::one_by_one;
    for (const std::int64_t tokens : {16, 32, 48})
      plans.emplace_back(fmt::format("{} stages, chunks of {}", pp, tokens), in_chunks(tokens, pp));
  }
  for (const auto& [what, fixed] : plans) {
    const Trained found = train_on(study, fixed);
    expect_near(found, one, 1e-5, what);
    for (std::size_t task = 0; task < 4; ++task)
      EXPECT_TRUE(found.adapters[task] == one.adapters[task]) << what << ", task " << task;
  }
  // Without, sums are not the same; and as near as rounding lets them be.
  TrainerStudy plain;
  const Trained rounded = train_on(plain, apart(PipelineTemplate::one_by_one, 1));
  const Trained otherwise = train_on(plain, in_chunks(16, 1));
  EXPECT_FALSE(rounded.adapters == otherwise.adapters);
  expect_near(rounded, one, 1e-5, "plain");
}

/// Alone, or beside others, a task is the same; one that diverges changes none of them.
TEST(Reproducible, NobodyIsSeenByOthers) {
  const TrainerStudy study = reproducible_study();
  TrainerStudy diverging(kDivergingRate);
  diverging.workload.reproducible = true;
  const planner::FixedPlan fixed = in_chunks(16, 2);
  const Trained together = train_on(study, fixed), beside = train_on(diverging, fixed);
  EXPECT_EQ(beside.diverged, std::set<TaskIndex>{1});
  for (const std::size_t task : {0, 2, 3}) {
    EXPECT_TRUE(beside.adapters[task] == together.adapters[task]) << task;
    planner::FixedPlan alone = in_chunks(16, 2);
    alone.htasks = {{static_cast<TaskIndex>(task)}};
    TrainerStudy one = reproducible_study();
    const Trained found = [&] {
      planner::Plan plan;
      plan.workload = one.workload;
      plan.fixed = alone;
      std::vector<std::vector<float>> parts(2);
      run_on_threads(2, [&](Communicator& communicator) {
        workload::SampleIndex samples = *one.samples;
        const std::unique_ptr<kernels::Device> device = kernels::make_cpu_device();
        Runner runner({plan.fixed, one.workload, samples, one.datasets}, communicator, *device);
        train(plan, samples, runner, communicator, {});
        parts[static_cast<std::size_t>(communicator.rank())] = runner.adapters()[task]->parameters_on_host();
      });
      Trained trained;
      trained.adapters.push_back(parts[0]);
      trained.adapters[0].insert(trained.adapters[0].end(), parts[1].begin(), parts[1].end());
      return trained;
    }();
    EXPECT_TRUE(found.adapters[0] == together.adapters[task]) << task;
  }
}

}  // namespace
}  // namespace braid::exec

#include "exec/evaluations.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "exec/training.h"

namespace braid::exec {
namespace {

/// The first three tasks are evaluated after every second step, on the samples that their third step learns from.
TrainerStudy evaluated_study() {
  TrainerStudy study;
  std::vector<std::vector<workload::SampleSize>> sizes, held_out(4);
  for (int task = 0; task < 4; ++task) {
    workload::Dataset& dataset = study.datasets[static_cast<std::size_t>(task)];
    sizes.push_back(study.samples->sizes(task));
    if (task == 3) continue;
    study.workload.tasks[static_cast<std::size_t>(task)].evaluation = workload::Evaluation{0.1, {}, 2, 0};
    for (const workload::SampleRef& sample : study.samples->global_batch(task, 2))
      dataset.samples.push_back(dataset.samples[static_cast<std::size_t>(sample.sample)]), ++dataset.held_out;
    held_out[static_cast<std::size_t>(task)] = workload::held_out_sizes(dataset);
  }
  study.samples.emplace(study.workload.tasks, std::move(sizes), std::move(held_out));
  return study;
}

std::vector<Evaluated> told(const std::vector<EvaluationReport>& reports) {
  std::vector<Evaluated> losses;
  for (const EvaluationReport& report : reports) losses.push_back({report.step, report.loss.loss});
  return losses;
}

/// A step's loss is that of its batch before it is learned from: what is held out costs just that, wherever layers lie;
/// and nothing else is any other than without evaluations.
TEST(Evaluated, WhatIsHeldOutCostsWhatAStepOnItWouldTell) {
  const TrainerStudy study = evaluated_study();
  TrainerStudy plain = evaluated_study();
  for (workload::Task& task : plain.workload.tasks) task.evaluation.reset();
  for (const PipelineTemplate pipeline : {PipelineTemplate::one_by_one, PipelineTemplate::one_forward_one_backward}) {
    for (const auto& [tp, pp, replicas] : {std::array{1, 1, 1}, {1, 2, 1}, {2, 1, 1}, {1, 1, 2}}) {
      if (pipeline == PipelineTemplate::one_forward_one_backward && replicas > 1) continue;
      planner::FixedPlan fixed = two_layers_on(tp, pp, replicas);
      fixed.schedule.pipeline = pipeline;
      const std::string what = fmt::format("tp {}, {} stages, {} replicas", tp, pp, replicas);
      const Trained run = train_on(study, fixed), without = train_on(plain, fixed);
      for (std::size_t task = 0; task < 4; ++task) {
        const std::vector<EvaluationReport>& reports = run.evaluations[task];
        // Of 6, 5, 4 and 3 steps.
        ASSERT_EQ(reports.size(), (std::array{3U, 3U, 2U, 0U})[task]) << what;
        if (task == 3) continue;
        EXPECT_EQ(reports[0].step, 2);
        EXPECT_EQ(reports.back().step, std::ssize(run.steps[task])) << "after the last";
        EXPECT_NEAR(reports[0].loss.loss / run.steps[task][2].loss, 1, 1e-5) << what << ", task " << task;
        EXPECT_TRUE(reports[0].best);
      }
      expect_near(run, without, 1e-5, what);
      if (planner::streams(fixed)) continue;
      for (std::size_t task = 0; task < 4; ++task) EXPECT_EQ(run.adapters[task], without.adapters[task]) << what;
    }
  }
}

/// Its lowest loss is found, and it ends as soon as so many came after it; the others go on as they are alone.
TEST(Evaluated, ATaskEndsWhereItGetsNoBetter) {
  TrainerStudy study = evaluated_study();
  // What is held out counts downwards: the more is learned, the less it is foreseen.
  workload::Dataset& dataset = study.datasets[1];
  for (std::size_t i = dataset.samples.size() - static_cast<std::size_t>(dataset.held_out); i < dataset.samples.size();
       ++i) {
    std::ranges::reverse(dataset.samples[i].tokens);
    dataset.samples[i].labels = dataset.samples[i].tokens;
  }
  study.workload.tasks[1].evaluation->every = 1;
  study.workload.tasks[1].optimizer.lr = 0.1;
  const planner::FixedPlan fixed = apart(PipelineTemplate::one_by_one, 1);
  const Trained whole = train_on(study, fixed);
  std::size_t best = 0;
  for (std::size_t i = 0; i < whole.evaluations[1].size(); ++i)
    if (whole.evaluations[1][i].loss.loss < whole.evaluations[1][best].loss.loss) best = i;
  ASSERT_LT(best + 2, whole.evaluations[1].size()) << "nothing to end early";
  for (const std::int64_t patience : {1, 2}) {
    study.workload.tasks[1].evaluation->patience = patience;
    const Trained run = train_on(study, fixed);
    EXPECT_EQ(run.ended, (EndedTasks{{1, Ended::early}}));
    ASSERT_EQ(run.evaluations[1].size(), best + 1 + static_cast<std::size_t>(patience));
    EXPECT_EQ(std::ssize(run.steps[1]), run.evaluations[1].back().step);
    for (const std::size_t task : {0, 2, 3}) EXPECT_EQ(run.adapters[task], whole.adapters[task]) << task;
  }
}

/// Wherever it stops, a run that goes on is evaluated as if it had not.
TEST(Evaluated, ARunThatGoesOnIsEvaluatedAsIfItHadNotStopped) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("braid-evaluated-" + std::to_string(::getpid()));
  TrainerStudy study = evaluated_study();
  study.workload.tasks[0].evaluation->patience = 1;
  study.workload.tasks[0].optimizer.lr = 0.3;
  planner::FixedPlan fixed = two_layers_on(1, 2, 1);
  fixed.schedule.pipeline = PipelineTemplate::one_by_one;
  const Trained whole = train_on(study, fixed);
  for (std::int64_t windows = 1; windows < 5; ++windows) {
    std::filesystem::remove_all(folder);
    RunPart first{folder, windows}, rest{folder};
    Trained both = train_on(study, fixed, kernels::make_cpu_device, {}, &first);
    const Trained second = train_on(study, fixed, kernels::make_cpu_device, {}, &rest);
    EXPECT_EQ(second.ended, whole.ended);
    for (std::size_t task = 0; task < 4; ++task) {
      both.evaluations[task].insert(both.evaluations[task].end(), second.evaluations[task].begin(),
                                    second.evaluations[task].end());
      EXPECT_EQ(told(both.evaluations[task]), told(whole.evaluations[task])) << windows << ", task " << task;
      EXPECT_EQ(second.adapters[task], whole.adapters[task]) << windows << ", task " << task;
    }
  }
  std::filesystem::remove_all(folder);
}

TEST(Evaluated, ALossThatIsNoNumberIsNeverTheBest) {
  const TrainerStudy study = evaluated_study();
  Evaluations evaluations(study.workload, *study.samples);
  evaluations.add(0, {2, std::nan("")});
  EXPECT_FALSE(evaluations.best(0));
  evaluations.add(0, {4, 3.0});
  evaluations.add(0, {6, std::nan("")});
  EXPECT_EQ(evaluations.best(0), (Evaluated{4, 3.0}));
}

}  // namespace
}  // namespace braid::exec

#pragma once

#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "exec/devices.h"
#include "exec/late_device.h"
#include "exec/ranks/thread_ranks.h"
#include "exec/trainer.h"
#include "planner/plan/deployment.h"
#include "planner/policies/common_options.h"
#include "support.h"

/// Whole trainings of a few small tasks, on ranks that are threads.
namespace braid::exec {

using planner::PipelineTemplate;
using planner::TaskIndex;

/// Four tasks on the golden Llama backbone: task t takes 6 - t steps on samples of 12 t + 6 tokens or a few more, that
/// count upwards. Task 2 clips, task 3 drops.
struct TrainerStudy {
  explicit TrainerStudy(double learning_rate_of_task_1 = 1e-2, const char* backbone = "llama") {
    workload.backbone_folder = golden(backbone);
    workload.backbone = costmodel::read_backbone(workload.backbone_folder);
    std::vector<std::vector<workload::SampleSize>> sizes;
    for (std::int64_t t = 0; t < 4; ++t) {
      workload::Task& task = workload.tasks.emplace_back();
      task.name = "task" + std::to_string(t);
      task.max_length = 12 * t + 10;
      task.adapter = {4, 8, false, t == 3 ? 0.1 : 0.0, {true, false, true}};
      task.global_batch_size = 6 - t;
      task.steps = 6 - t;
      task.seed = static_cast<std::uint64_t>(t);
      task.optimizer.lr = t == 1 ? learning_rate_of_task_1 : 1e-2;
      if (t == 2) task.optimizer.max_grad_norm = 0.5;
      datasets.push_back(counting(12 * t + 6, std::min<std::int64_t>(150, workload.backbone.vocabulary)));
      sizes.push_back(workload::sample_sizes(datasets.back()));
    }
    samples.emplace(workload.tasks, std::move(sizes));
  }

  static workload::Dataset counting(std::int64_t length, std::int64_t tokens) {
    workload::Dataset dataset;
    for (std::int32_t i = 0; i < 15; ++i) {
      workload::Sample& sample = dataset.samples.emplace_back();
      for (std::int32_t place = 0; place < length + i % 4; ++place)
        sample.append(static_cast<std::int32_t>((7 * i + 3 * place) % tokens), true);
    }
    return dataset;
  }

  workload::Workload workload;
  std::vector<workload::Dataset> datasets;
  std::optional<workload::SampleIndex> samples;
};

/// No adapter stands it: the second step is the last.
constexpr double kDivergingRate = 1e38;

/// Every task by itself, on one stage.
inline planner::FixedPlan apart(PipelineTemplate pipeline, std::int64_t steps_per_window) {
  planner::FixedPlan fixed;
  fixed.deployment.push_back({1, {{0, 2}}});
  planner::one_task_per_htask(4, fixed);
  fixed.schedule.pipeline = pipeline;
  fixed.batching.padding = planner::Padding::max_length;
  fixed.batching.microbatches = 2;
  fixed.schedule.steps_per_window = steps_per_window;
  return fixed;
}

/// The same of two layers, on shards, stages and replicas.
inline planner::FixedPlan two_layers_on(std::int64_t tp, std::int64_t pp, std::int64_t replicas) {
  planner::FixedPlan fixed = apart(PipelineTemplate::one_forward_one_backward, 1);
  fixed.deployment = planner::deploy(2, tp, pp, replicas);
  return fixed;
}

/// What is left of a run.
struct Trained {
  std::vector<std::vector<StepMetrics>> steps;  // per task
  std::vector<std::vector<float>> adapters;     // per task
  std::set<TaskIndex> diverged;
  EndedTasks ended;
  std::vector<std::vector<EvaluationReport>> evaluations;  // per task
};

/// A part of a run: goes on from the last checkpoint in `folder`, where there is one, and ends after so many windows.
struct RunPart {
  std::filesystem::path folder;
  std::int64_t windows = std::numeric_limits<std::int64_t>::max();
  std::int64_t checkpoint_steps = 0;
  std::vector<std::pair<std::string, std::string>> data_hashes = {};
  std::vector<std::string> notices = {};  // that were told
  std::optional<TaskIndex> cancel = {};   // after the first window
  std::int64_t checkpoints_kept = Checkpoints::kUsuallyKept;
};

/// On as many ranks as the plan has, which are threads with a device each.
inline Trained train_on(const TrainerStudy& study, const planner::FixedPlan& fixed,
                        const std::function<std::unique_ptr<kernels::Device>()>& make_device = kernels::make_cpu_device,
                        const costmodel::Profile& profile = {}, RunPart* part = nullptr) {
  planner::Plan plan;
  if (part) plan.data_hashes = part->data_hashes;
  plan.profile = profile;
  plan.workload = study.workload;
  plan.fixed = fixed;
  Trained trained;
  trained.steps.resize(study.workload.tasks.size());
  trained.evaluations.resize(study.workload.tasks.size());
  TrainOptions options;
  std::atomic<bool> stop = false;
  std::int64_t told = 0;
  options.stop = &stop;
  options.on_window = [&](const WindowReport& report) {
    stop = part && ++told >= part->windows;
    for (const StepMetrics& step : report.steps) trained.steps[static_cast<std::size_t>(step.task)].push_back(step);
    double seconds = 0;  // of task 0, which has steps in every window
    for (const StepMetrics& step : report.steps) seconds += step.task == 0 ? step.seconds : 0;
    EXPECT_NEAR(seconds, report.seconds, 1e-9 * report.seconds);
  };
  // Stages hold their layers in order, and an adapter's numbers stand layer by layer.
  std::vector<std::vector<std::vector<float>>> parts(static_cast<std::size_t>(fixed.ranks()));
  run_on_threads(fixed.ranks(), [&](Communicator& communicator) {
    workload::SampleIndex samples = *study.samples;  // one thread's
    const std::unique_ptr<kernels::Device> own = make_device();
    kernels::Device& device = *own;
    Runner runner({fixed, study.workload, samples, study.datasets}, communicator, device);
    TrainOptions mine = options;
    mine.on_evaluation = [&](const EvaluationReport& report) {
      if (communicator.rank() == 0) trained.evaluations[static_cast<std::size_t>(report.task)].push_back(report);
    };
    std::optional<Checkpoints> checkpoints;
    std::optional<Checkpoint> begun;
    if (part) {
      checkpoints.emplace(part->folder, plan, part->checkpoints_kept);
      begun = checkpoints->newest();
      mine.checkpoints = &*checkpoints;
      mine.checkpoint_steps = part->checkpoint_steps;
      if (begun) mine.begun = &*begun;
      if (communicator.rank() == 0) {
        if (begun) part->notices = begun->notices;
        mine.on_notice = [&](const std::string& notice) { part->notices.push_back(notice); };
      }
      mine.cancel = [&] { return told > 0 ? part->cancel : std::nullopt; };
      communicator.barrier();
    }
    const TrainResult result = train(plan, samples, runner, communicator, mine);
    if (communicator.rank() == 0) trained.diverged = result.diverged(), trained.ended = result.ended;
    // Of ranks that hold the same layers one tells.
    if (!runner.places()[static_cast<std::size_t>(communicator.rank())].tells_of_layers()) return;
    for (const std::unique_ptr<Adapter>& adapter : runner.adapters())
      parts[static_cast<std::size_t>(communicator.rank())].push_back(adapter->parameters_on_host());
  });
  trained.adapters.resize(study.workload.tasks.size());
  for (const auto& of_rank : parts) {
    for (std::size_t task = 0; task < of_rank.size(); ++task)
      trained.adapters[task].insert(trained.adapters[task].end(), of_rank[task].begin(), of_rank[task].end());
  }
  return trained;
}

/// Losses and adapters as `one` has them, to so much of each loss.
inline void expect_near(const Trained& a, const Trained& one, double tolerance, const std::string& what) {
  for (std::size_t task = 0; task < one.steps.size(); ++task) {
    ASSERT_EQ(a.steps[task].size(), one.steps[task].size()) << what << ", task " << task;
    for (std::size_t i = 0; i < one.steps[task].size(); ++i) {
      EXPECT_NEAR(a.steps[task][i].loss / one.steps[task][i].loss, 1, tolerance) << what << ", " << task << " " << i;
      EXPECT_NEAR(a.steps[task][i].gradient_norm / one.steps[task][i].gradient_norm, 1, 100 * tolerance) << what;
    }
  }
}

/// Whatever runs later than it is called leaves what it leaves when it runs at once, to the bit: nobody reads on the
/// host what no event has told of, and messages go when they are there.
inline void expect_nothing_hurries(const TrainerStudy& study, const planner::FixedPlan& fixed,
                                   const std::string& what) {
  const Trained at_once = train_on(study, fixed, kernels::make_reference_device);
  static std::atomic<std::uint64_t> seed = 1;
  for (const bool groups : {false, true}) {
    const Trained late = train_on(study, fixed, [&] { return make_late_device(seed++, groups); });
    const std::string told = what + (groups ? ", by groups of devices" : "");
    for (std::size_t task = 0; task < at_once.steps.size(); ++task) {
      ASSERT_EQ(late.steps[task].size(), at_once.steps[task].size()) << told << ", task " << task;
      for (std::size_t i = 0; i < at_once.steps[task].size(); ++i) {
        EXPECT_EQ(late.steps[task][i].loss, at_once.steps[task][i].loss) << told << ", " << task << " " << i;
        EXPECT_EQ(late.steps[task][i].gradient_norm, at_once.steps[task][i].gradient_norm) << told;
      }
      EXPECT_EQ(late.adapters[task], at_once.adapters[task]) << told << ", task " << task;
    }
    if (fixed.ranks() == 1) break;
  }
}

}  // namespace braid::exec

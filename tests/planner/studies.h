#pragma once

#include <string>

#include "costmodel/profile/profile.h"
#include "planner/search/make_plan.h"
#include "sim/replay.h"

// Small studies that are planned in tests: tasks of given lengths on an analytic GPU.
namespace braid::planner::testing {

struct StudyTask {
  std::int64_t max_length = 64;
  std::int64_t batch = 4;
  std::int64_t steps = 9;
  std::int64_t rank = 8;
  bool clips = false;
};

/// A workload whose samples have lengths from half of max_length up to it, in turn.
struct Study {
  workload::Workload workload;
  workload::Cluster cluster;
  workload::SampleIndex samples;
  costmodel::CostModel cost;

  PlanningInput input(const Overrides& overrides = {}) const {
    const auto judge = [](const Program& program, const Durations& durations) {
      return sim::replay(program, durations);
    };
    return {workload, cluster, samples, cost, judge, overrides};
  }
};

inline workload::Workload study_workload(const std::vector<StudyTask>& tasks, std::int64_t layers) {
  workload::Workload workload;
  workload.file = "study.yaml";
  workload.backbone_reference = "tinyllama-1.1b";
  workload.backbone = costmodel::builtin_backbone("tinyllama-1.1b");
  workload.backbone.layers = layers;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    workload::Task task;
    task.name = "task" + std::to_string(t);
    task.lengths = workload::LengthDistribution{
        .mean = static_cast<double>(tasks[t].max_length) / 2, .sigma = 0.4, .max = tasks[t].max_length};
    task.max_length = tasks[t].max_length;
    task.adapter.rank = tasks[t].rank;
    task.adapter.alpha = 16;
    task.adapter.targets = {true, true, true, true};
    task.global_batch_size = tasks[t].batch;
    task.steps = tasks[t].steps;
    task.seed = t;
    task.optimizer.max_grad_norm = tasks[t].clips ? 1 : 0;
    workload.tasks.push_back(task);
  }
  return workload;
}

inline workload::SampleIndex study_samples(const workload::Workload& workload) {
  std::vector<std::vector<workload::SampleSize>> sizes;
  for (const workload::Task& task : workload.tasks) {
    std::vector<workload::SampleSize>& mine = sizes.emplace_back();
    // One more than whole batches, so that an epoch ends in a short one.
    for (std::int64_t i = 0; i <= 3 * task.global_batch_size; ++i) {
      const std::int64_t tokens = task.max_length - i * 7 % (task.max_length / 2);
      mine.push_back({tokens, tokens - 1});
    }
  }
  return {workload.tasks, std::move(sizes)};
}

inline Study make_study(const std::vector<StudyTask>& tasks, std::int64_t nodes, std::int64_t gpus_per_node,
                        std::int64_t layers = 8, const std::string& gpu = "a40") {
  workload::Workload workload = study_workload(tasks, layers);
  workload::Cluster cluster;
  cluster.gpu = gpu;
  cluster.nodes = nodes;
  cluster.gpus_per_node = gpus_per_node;
  cluster.intra_node = costmodel::named_link("nvlink", costmodel::device_of(gpu));
  cluster.inter_node = costmodel::named_link("ib-100g", costmodel::device_of(gpu));
  costmodel::Profile profile = costmodel::analytic_profile(gpu, costmodel::DataType::bf16);
  profile.interconnect = cluster.interconnect();
  workload::SampleIndex samples = study_samples(workload);
  return {std::move(workload), std::move(cluster), std::move(samples), costmodel::CostModel(std::move(profile))};
}

/// The study with so much memory on each GPU.
inline Study with_memory(const Study& study, Bytes memory) {
  costmodel::Profile profile = study.cost.profile();
  profile.memory_bytes = memory;
  return {study.workload, study.cluster, study.samples, costmodel::CostModel(std::move(profile))};
}

}  // namespace braid::planner::testing

#pragma once

#include <algorithm>

#include "base/random.h"
#include "planner/studies.h"

// Random things to plan, and the changes to them that a person makes who is told what would fit.
namespace braid::planner::testing {

struct Request {
  workload::Workload workload;
  std::vector<std::vector<workload::SampleSize>> sizes;
  workload::Cluster cluster;
  Bytes memory = 0;
  std::string policy;
  Overrides overrides;

  Study study() const {
    costmodel::Profile profile = costmodel::analytic_profile(cluster.gpu, costmodel::DataType::bf16);
    profile.interconnect = cluster.interconnect();
    profile.memory_bytes = memory;
    return {workload, cluster, workload::SampleIndex(workload.tasks, sizes), costmodel::CostModel(std::move(profile))};
  }

  void lower_max_length(std::int64_t most) {
    for (std::size_t t = 0; t < workload.tasks.size(); ++t) {
      workload::Task& task = workload.tasks[t];
      if (task.max_length <= most) continue;
      task.max_length = most;
      if (task.on_too_long == workload::OnTooLong::drop)
        std::erase_if(sizes[t], [&](const workload::SampleSize& size) { return size.tokens > most; });
      for (workload::SampleSize& size : sizes[t]) {
        size.tokens = std::min(size.tokens, most);
        size.supervised = std::min(size.supervised, size.tokens - 1);
      }
    }
  }

  void lower_global_batch_size(std::int64_t most) {
    for (workload::Task& task : workload.tasks) task.global_batch_size = std::min(task.global_batch_size, most);
  }

  void keep(const std::vector<std::string>& names) {
    for (std::size_t t = workload.tasks.size(); t-- > 0;) {
      if (std::find(names.begin(), names.end(), workload.tasks[t].name) != names.end()) continue;
      workload.tasks.erase(workload.tasks.begin() + static_cast<std::ptrdiff_t>(t));
      sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(t));
    }
  }

  void use(std::int64_t nodes, std::int64_t gpus_per_node) {
    const costmodel::Device& device = costmodel::device_of(cluster.gpu);
    cluster.nodes = nodes;
    cluster.gpus_per_node = gpus_per_node;
    if (gpus_per_node > 1) cluster.intra_node = costmodel::named_link("pcie4", device);
    if (nodes > 1) cluster.inter_node = costmodel::named_link("ib-100g", device);
  }

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const workload::Task& task : workload.tasks) all.push_back(task.name);
    return all;
  }
};

template <typename Value>
Value one_of(RandomStream& random, std::initializer_list<Value> values) {
  return values.begin()[random.next_below(values.size())];
}

inline const char* any_policy(RandomStream& random) {
  return one_of<const char*>(
      random, {"hf-peft", "hf-peft:resident=false", "nemo", "nemo:resident=false:schedule=1f1b", "megatron-fsdp",
               "megatron-pp", "megatron-pp:pad_to=none", "gpipe", "gpipe:transport=hosts", "sl-peft", "mlora",
               "mlora:mode=gpipe:batch=off", "muxtune", "muxtune:alignment=zero", "muxtune:alignment=packed",
               "muxtune:chunk=128", "muxtune:fusion=off:drain=off"});
}

inline void add_any_task(RandomStream& random, Request& request) {
  workload::Task task;
  task.name = "t" + std::to_string(request.workload.tasks.size());
  task.max_length = one_of(random, {300, 512, 1024, 4096});
  task.on_too_long =
      one_of(random, {workload::OnTooLong::error, workload::OnTooLong::truncate, workload::OnTooLong::drop});
  task.adapter.rank = 16;
  task.adapter.alpha = 16;
  task.adapter.targets = {true, false, true, false};
  task.global_batch_size = one_of(random, {1, 4, 10});
  task.steps = 6;
  task.seed = request.workload.tasks.size();
  std::vector<workload::SampleSize>& mine = request.sizes.emplace_back();
  for (std::int64_t i = 0; i < 2 * task.global_batch_size + 1; ++i) {
    const auto shorter = random.next_below(static_cast<std::uint64_t>(task.max_length) * 2 / 3);
    const std::int64_t tokens = task.max_length - static_cast<std::int64_t>(shorter);
    mine.push_back({tokens, tokens / 2});
  }
  request.workload.tasks.push_back(std::move(task));
}

/// Up to six tasks on up to eight GPUs with a fifth to two and a half times the memory that the weights take.
inline Request any_request(RandomStream& random) {
  Request made;
  made.workload.file = "random.yaml";
  made.workload.backbone = costmodel::builtin_backbone(one_of<const char*>(random, {"tinyllama-1.1b", "llama2-7b"}));
  made.workload.backbone.layers = one_of(random, {4, 6, 8});
  for (std::uint64_t left = 1 + random.next_below(6); left > 0; --left) add_any_task(random, made);
  made.cluster.gpu = "h100";
  made.use(one_of(random, {1, 1, 2}), one_of(random, {1, 2, 4}));
  const Bytes weights =
      costmodel::backbone_bytes(made.workload.backbone, {made.workload.backbone.layers, true, true, 1},
                                costmodel::gpu_storage(costmodel::DataType::bf16));
  made.memory = static_cast<Bytes>(6e8 + static_cast<double>(weights) *
                                             one_of(random, {0.3, 0.5, 0.6, 1.0, 1.02, 1.05, 1.1, 1.3, 1.6}));
  made.policy = any_policy(random);
  if (random.next_below(2) == 0) made.policy += ":recompute=none";
  if (random.next_below(4) == 0) made.overrides.microbatches = 1;
  if (random.next_below(6) == 0) made.overrides.pp = 1;
  return made;
}

}  // namespace braid::planner::testing

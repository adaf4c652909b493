#include "studies/costmodel/mlora_facts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "base/random.h"
#include "costmodel/profile/cost_model.h"
#include "costmodel/profile/memory_fit.h"
#include "costmodel/work/memory.h"
#include "studies/costmodel/paper_loads.h"

namespace braid::costmodel::studies {
namespace {

constexpr std::int64_t kSequences = 8, kLength = 512;

AdapterShape mlora_adapter() {
  return paper_lora(16, kAttentionModules, 0.05);
}

Profile mlora_profile() {
  return analytic_profile("a6000", DataType::int8);
}

/// With 8-bit weights mLoRA recomputes every layer.
StageShape whole_backbone(const BackboneShape& backbone) {
  return {backbone.layers, true, true, 1, false, {RecomputeKind::full, backbone.layers}};
}

PassWork step_work(const CostModel& cost, const BackboneShape& backbone, const MicrobatchLoad& load) {
  const StageShape whole = whole_backbone(backbone);
  PassWork work;
  for (const Pass pass : {Pass::forward, Pass::backward})
    work += cost.work(stage_operators(backbone, whole, load, pass, cost.storage()));
  return work;
}

/// Tasks in one batch.
PassWork batched_work(const CostModel& cost, const BackboneShape& backbone, std::int64_t tasks,
                      AdapterKernels kernels = AdapterKernels::separate) {
  MicrobatchLoad load = paper_load(mlora_adapter(), tasks, kSequences, kLength);
  load.kernels = kernels;
  return step_work(cost, backbone, load);
}

LaunchFact launch_fact(const CostModel& cost, const std::string& name, std::int64_t tasks, const std::string& runs) {
  const BackboneShape backbone = builtin_backbone(name);
  const bool apart = runs == "peft";
  const AdapterKernels kernels = runs == "batched, graph not pruned" ? AdapterKernels::split : AdapterKernels::separate;
  const PassWork work = batched_work(cost, backbone, apart ? 1 : tasks, kernels);
  const double added = batched_work(cost, backbone, 2).host_seconds - batched_work(cost, backbone, 1).host_seconds;
  const auto times = static_cast<double>(apart ? tasks : 1);
  const double a_launch = cost.profile().launch_seconds;
  return {name,
          runs,
          tasks,
          std::round(added / a_launch),
          std::round(times * work.host_seconds / a_launch),
          times * work.host_seconds,
          times * work.device_seconds,
          times * work.total().seconds};
}

/// The most that one GPU holds of so many tasks in one batch.
Bytes peak_bytes(const BackboneShape& backbone, std::int64_t tasks, std::int64_t batch, std::int64_t length) {
  const Storage storage = mlora_profile().storage();
  const StageShape whole = whole_backbone(backbone);
  const MicrobatchLoad load = paper_load(mlora_adapter(), tasks, batch, length);
  return storage.context + backbone_bytes(backbone, whole, storage) +
         tasks * adapter_bytes(backbone, mlora_adapter(), backbone.layers) +
         stash_bytes(backbone, whole, load, storage) +
         std::max(workspace_bytes(backbone, whole, load, Pass::forward, storage),
                  workspace_bytes(backbone, whole, load, Pass::backward, storage));
}

MemoryFitFact memory_fit_fact(const std::string& name, std::vector<MemoryPoint> all, std::size_t points,
                              RandomStream& random) {
  MemoryFitFact fact{.backbone = name, .points = points};
  for (int draw = 0; draw < kMemoryFitDraws; ++draw) {
    shuffle(std::span(all), random);
    MemoryLearner learner;
    for (std::size_t i = 0; i < points; ++i) learner.add(all[i]);
    const MemoryFit fit = learner.fit();
    for (std::size_t i = points; i < all.size(); ++i) {
      const auto bytes = static_cast<double>(all[i].bytes);
      const double error = std::abs(fit.bytes(all[i].batch, all[i].length) / bytes - 1);
      fact.mean_error += error / static_cast<double>(kMemoryFitDraws * (all.size() - points));
      fact.worst_error = std::max(fact.worst_error, error);
    }
  }
  return fact;
}

}  // namespace

const std::vector<std::string>& mlora_backbones() {
  static const std::vector<std::string> names = {"tinyllama-1.1b", "llama2-7b", "llama2-13b"};
  return names;
}

std::vector<LaunchFact> launch_facts() {
  const CostModel cost(mlora_profile());
  std::vector<LaunchFact> facts;
  for (const std::string& name : mlora_backbones()) {
    for (const std::int64_t tasks : {1, 2, 4}) {
      for (const char* runs : {"peft", "batched", "batched, graph not pruned"})
        facts.push_back(launch_fact(cost, name, tasks, runs));
    }
  }
  return facts;
}

double paper_launch_share(const std::string& backbone) {
  static const std::map<std::string, double> shares = {
      {"tinyllama-1.1b", 0.10}, {"llama2-7b", 0.075}, {"llama2-13b", 0.04}};
  return shares.at(backbone);
}

double exposed_launch_seconds() {
  double logarithms = 0;
  for (const LaunchFact& fact : launch_facts()) {
    if (fact.tasks != 1 || fact.runs != "peft") continue;
    const double share = paper_launch_share(fact.backbone);
    logarithms += std::log(share / (1 - share) * fact.kernel_seconds / fact.launches);
  }
  return std::exp(logarithms / static_cast<double>(mlora_backbones().size()));
}

double split_gradient_share(const std::string& name, std::int64_t tasks) {
  const BackboneShape backbone = builtin_backbone(name);
  const std::int64_t tokens = tasks * kSequences * kLength;
  return static_cast<double>(tokens * backbone.hidden * bytes_of(DataType::f32)) /
         static_cast<double>(peak_bytes(backbone, tasks, kSequences, kLength));
}

std::vector<MemoryFitFact> memory_fit_facts() {
  constexpr std::uint64_t kSeed = 8;
  std::vector<MemoryFitFact> facts;
  for (const std::string& name : mlora_backbones()) {
    const BackboneShape backbone = builtin_backbone(name);
    for (const std::int64_t least_tokens : {0, 2048}) {
      std::vector<MemoryPoint> all;
      for (const std::int64_t batch : {1, 2, 4, 8, 16}) {
        for (const std::int64_t length : {64, 128, 256, 384, 512, 768, 1024}) {
          if (batch * length >= least_tokens) all.push_back({batch, length, peak_bytes(backbone, 1, batch, length)});
        }
      }
      RandomStream random(kSeed);
      for (const std::size_t points : {3, 4, 6, 8, 10, 12}) {
        facts.push_back(memory_fit_fact(name, all, points, random));
        facts.back().least_tokens = least_tokens;
      }
    }
  }
  return facts;
}

}  // namespace braid::costmodel::studies

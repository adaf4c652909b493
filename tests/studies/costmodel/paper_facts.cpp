#include "studies/costmodel/paper_facts.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "costmodel/gpu/roofline.h"
#include "costmodel/profile/cost_model.h"
#include "costmodel/work/memory.h"
#include "studies/costmodel/lorafusion_facts.h"
#include "studies/costmodel/mlora_facts.h"
#include "studies/costmodel/paper_loads.h"
#include "studies/costmodel/reference_layers.h"

namespace braid::costmodel::studies {
namespace {

double pass_seconds(const CostModel& cost, const BackboneShape& backbone, const StageShape& stage,
                    const MicrobatchLoad& load) {
  double seconds = 0;
  for (const Pass pass : {Pass::forward, Pass::backward})
    seconds += cost.estimate(stage_operators(backbone, stage, load, pass, cost.storage())).seconds;
  return seconds;
}

/// Tasks of MuxTune's table 2, in order: sequences of a microbatch and the length they are padded to (SST2 64, QA 128,
/// RTE 256).
struct PaperTask {
  std::int64_t sequences = 0;
  std::int64_t length = 0;
};
constexpr std::array<PaperTask, 8> kWorkloadA = {
    {{4, 64}, {2, 128}, {4, 128}, {4, 64}, {8, 64}, {2, 64}, {4, 128}, {4, 128}}};
constexpr std::array<PaperTask, 8> kWorkloadB = {
    {{4, 256}, {2, 64}, {4, 256}, {4, 64}, {8, 64}, {2, 256}, {4, 256}, {4, 256}}};

/// Of NeMo, which MuxTune is built on.
Storage megatron_storage() {
  Storage storage = gpu_storage(DataType::bf16);
  storage.loss_in_place = true;
  return storage;
}

/// Tasks that fit on the fullest stage when each has a replica of the backbone and its own activations (NeMo, HF-PEFT)
/// in one process a GPU.
int colocated_tasks(const char* name, const std::array<PaperTask, 8>& tasks, std::int64_t tp, std::int64_t pp) {
  const BackboneShape backbone = builtin_backbone(name);
  const Storage storage = megatron_storage();
  const AdapterShape adapter = paper_lora(16, kAttentionModules, 0);
  // Each task's activations stay; scratch is one task's at a time.
  std::vector<Bytes> scratch(static_cast<std::size_t>(pp), 0);
  std::vector<Bytes> held(static_cast<std::size_t>(pp), storage.context + (tp > 1 ? kCommunicatorBytes : 0));
  for (int count = 0;; ++count) {
    const PaperTask& task = tasks[static_cast<std::size_t>(count) % tasks.size()];
    const MicrobatchLoad load = paper_load(adapter, 1, task.sequences, task.length);
    for (std::int64_t s = 0; s < pp; ++s) {
      const StageShape stage{backbone.layers / pp, s == 0, s == pp - 1, tp};
      const auto at = static_cast<std::size_t>(s);
      held[at] += backbone_bytes(backbone, stage, storage) + adapter_bytes(backbone, adapter, stage.layers) +
                  stash_bytes(backbone, stage, load, storage);
      for (const Pass pass : {Pass::forward, Pass::backward})
        scratch[at] = std::max(scratch[at], workspace_bytes(backbone, stage, load, pass, storage));
      if (held[at] + scratch[at] > device_of("a40").memory_bytes) return count;
    }
  }
}

void add_muxtune(std::vector<PaperFact>& facts) {
  const BackboneShape backbone = builtin_backbone("llama2-7b");
  const AdapterShape adapter = paper_lora(16, kAttentionModules, 0);
  const StageShape eight{8, true, true};
  MicrobatchLoad batch = paper_load(adapter, 8, 8, 128);
  batch.kernels = AdapterKernels::side_by_side;
  for (const auto& [launches, seconds] : {std::pair("hidden", 0.0), std::pair("exposed", kEagerLaunchSeconds)}) {
    Profile profile = analytic_profile("a40", DataType::bf16);
    profile.exposed_launch_seconds = seconds;
    const CostModel cost(std::move(profile));
    const double alone = pass_seconds(cost, backbone, eight, paper_load(adapter, 1, 8, 128));
    const double together = pass_seconds(cost, backbone, eight, batch);
    facts.push_back({"MuxTune fig. 9(b)", fmt::format("8 tasks of 8 x 128 batched, launches {}", launches), "x", 1.12,
                     8 * alone / together});
  }

  const StageShape whole{backbone.layers, true, true};
  const Storage storage = megatron_storage();
  const MicrobatchLoad load = paper_load(adapter, 1, 8, 128);
  const double giga = 1e9;
  const auto frozen = static_cast<double>(backbone_bytes(backbone, whole, storage)) / giga;
  const auto stash = static_cast<double>(stash_bytes(backbone, whole, load, storage)) / giga;
  facts.push_back({"MuxTune 2.2", "LLaMA7B, backbone", "GB", 13.4, frozen});
  facts.push_back({"MuxTune 2.2", "LLaMA7B, activations of 8 x 128", "GB", 4.3, stash});
  const Bytes scratch = std::max(workspace_bytes(backbone, whole, load, Pass::forward, storage),
                                 workspace_bytes(backbone, whole, load, Pass::backward, storage));
  const Bytes other = storage.context + adapter_bytes(backbone, adapter, backbone.layers) + scratch;
  facts.push_back(
      {"MuxTune 2.2", "LLaMA7B, all with 8 x 128", "GB", 18.1, frozen + stash + static_cast<double>(other) / giga});
  const BackboneShape gpt = builtin_backbone("gpt3-2.7b");
  facts.push_back({"MuxTune 2.2", "GPT2.7B, backbone", "GB", 5.2,
                   static_cast<double>(backbone_bytes(gpt, {gpt.layers, true, true}, storage)) / giga});
  facts.push_back({"MuxTune fig. 17(a)", "GPT2.7B, tp 2: WL-A, replica and activations each", "", 15,
                   static_cast<double>(colocated_tasks("gpt3-2.7b", kWorkloadA, 2, 1))});
  facts.push_back({"MuxTune fig. 17(b)", "LLaMA7B, pp 4: WL-B, replica and activations each", "", 11,
                   static_cast<double>(colocated_tasks("llama2-7b", kWorkloadB, 1, 4))});
}

void add_mlora(std::vector<PaperFact>& facts) {
  for (const LaunchFact& fact : launch_facts()) {
    if (fact.tasks != 1 || fact.runs != "peft") continue;
    const double paper = 100 * paper_launch_share(fact.backbone), eager = fact.launches * kEagerLaunchSeconds;
    facts.push_back({"mLoRA fig. 14", "launches in a step of " + fact.backbone + ", eager", "%", paper,
                     100 * eager / (eager + fact.kernel_seconds)});
    facts.push_back({"mLoRA fig. 14", "launches in a step of " + fact.backbone + ", CUDA's", "%", paper,
                     100 * fact.launch_share()});
  }
  // The operator alone: a linear layer with four tasks' adapters.
  const Roofline roofline(device_of("a6000"), DataType::bf16);
  const auto latency = [&](bool pruned) {
    constexpr std::int64_t kSide = 4096, kTokens = 4096, kTasks = 4;
    double seconds = 0;
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      seconds += roofline.seconds({Operator::linear, pass, {kSide, kSide}, kTasks * kTokens});
      seconds += kTasks * roofline.seconds({Operator::lora, pass, {kSide, kSide, 16, 1}, kTokens});
    }
    if (!pruned)
      seconds += kTasks * roofline.seconds({Operator::split_gradient, Pass::backward, {kSide}, kTasks * kTokens});
    return seconds;
  };
  facts.push_back({"mLoRA fig. 16", "four tasks, a linear layer alone: pruning saves", "%", 17,
                   100 * (1 - latency(true) / latency(false))});
  facts.push_back({"mLoRA fig. 16", "four tasks, 1.1B: the split's 4 O h of the peak", "%", 7,
                   100 * split_gradient_share("tinyllama-1.1b", 4)});
}

}  // namespace

std::vector<PaperFact> paper_facts() {
  std::vector<PaperFact> facts = lorafusion_facts();
  add_muxtune(facts);
  add_mlora(facts);
  return facts;
}

}  // namespace braid::costmodel::studies

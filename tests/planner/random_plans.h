#pragma once

#include <map>

#include <rapidcheck.h>

#include "base/random.h"
#include "planner/bound/lower_bound.h"
#include "planner/plan/deployment.h"
#include "planner/program/orders.h"
#include "planner/window/alignment.h"
#include "planner/window/unit_stream.h"

// Workloads and plans for them that RapidCheck draws: valid ones, good or bad.
namespace braid::planner::testing {

struct RandomPlan {
  std::string gpu;
  bool slow_links = false;
  costmodel::AttentionKind attention = costmodel::AttentionKind::flash;
  workload::Workload workload;
  std::vector<std::vector<workload::SampleSize>> sizes;
  FixedPlan fixed;
  BoundScope scope;  ///< what this plan is one of
};

inline costmodel::BackboneShape any_backbone() {
  costmodel::BackboneShape shape;
  shape.name = "drawn";
  shape.architecture = *rc::gen::element(costmodel::Architecture::llama, costmodel::Architecture::gpt2);
  shape.layers = *rc::gen::inRange(1, 7);
  shape.heads = 4 * *rc::gen::inRange(1, 5);
  shape.kv_heads = *rc::gen::element<std::int64_t>(4, shape.heads);
  shape.head_dim = *rc::gen::element(32, 64, 128);
  shape.hidden = shape.query_width();
  shape.intermediate = *rc::gen::inRange<std::int64_t>(1, 5) * shape.hidden;
  shape.vocabulary = *rc::gen::inRange(100, 40000);
  shape.max_position = 4096;
  return shape;
}

/// Steps of many samples, so that kernels do more than start.
inline workload::Task any_task(int number, std::vector<workload::SampleSize>& sizes) {
  workload::Task task;
  task.name = fmt::format("t{}", number);
  task.max_length = 16 * *rc::gen::element<std::int64_t>(1, 2, 4, 8, 32, 64);
  task.adapter.rank = *rc::gen::element(4, 8, 64);
  task.adapter.dropout = *rc::gen::element(0.0, 0.1);
  for (bool& target : task.adapter.targets) target = *rc::gen::arbitrary<bool>();
  task.adapter.targets[static_cast<std::size_t>(*rc::gen::inRange(0, costmodel::kModuleCount))] = true;
  // Queries, keys and values have adapters apart or one of all three.
  if (task.adapter.has(costmodel::Module::qkv))
    for (const costmodel::Module part : costmodel::modules_of(costmodel::ModuleGroup::qkv))
      task.adapter.targets[static_cast<std::size_t>(part)] = false;
  task.global_batch_size = *rc::gen::inRange(1, 12);
  task.steps = 3;
  task.seed = *rc::gen::arbitrary<std::uint32_t>();
  if (*rc::gen::arbitrary<bool>()) task.optimizer.max_grad_norm = 1;
  if (*rc::gen::inRange(0, 4) == 0) task.objective.kind = workload::ObjectiveKind::dpo;
  const auto samples = *rc::gen::inRange<std::size_t>(1, 40);
  const bool alike = *rc::gen::arbitrary<bool>();
  for (std::size_t i = 0; i < samples; ++i) {
    const std::int64_t tokens = alike ? task.max_length : *rc::gen::inRange<std::int64_t>(2, task.max_length + 1);
    if (task.objective.pairs()) {
      const std::int64_t chosen = alike ? tokens : *rc::gen::inRange<std::int64_t>(2, task.max_length + 1);
      sizes.push_back({chosen + tokens, *rc::gen::inRange<std::int64_t>(0, chosen + tokens - 1), chosen});
    } else {
      sizes.push_back({tokens, *rc::gen::inRange<std::int64_t>(0, tokens)});
    }
  }
  return task;
}

/// Layers split anyhow, at least one to a stage.
inline std::vector<LayerRange> any_layers(std::int64_t layers, std::int64_t stages) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(stages), 1);
  for (std::int64_t left = layers - stages; left > 0; --left)
    ++counts[*rc::gen::inRange<std::size_t>(0, counts.size())];
  return layer_ranges(counts);
}

/// Items in groups, in order.
template <typename T>
std::vector<std::vector<T>> any_grouping(T count, bool alone) {
  std::vector<std::vector<T>> groups;
  for (T i = 0; i < count; ++i) {
    if (groups.empty() || alone || *rc::gen::arbitrary<bool>()) groups.emplace_back();
    groups.back().push_back(i);
  }
  return groups;
}

/// Buckets' clocks in some order, 1F1B over it, as many clocks as whole rows give.
inline std::vector<std::vector<TemplateSlot>> any_template(const FixedPlan& fixed) {
  std::vector<std::pair<std::int32_t, std::int32_t>> units;
  for (std::int32_t bucket = 0; bucket < static_cast<std::int32_t>(fixed.buckets.size()); ++bucket) {
    for (std::int32_t clock = 0; clock < fixed.batching.microbatches; ++clock) units.emplace_back(bucket, clock);
  }
  const auto seed = *rc::gen::arbitrary<std::uint32_t>();
  RandomStream random(seed);
  shuffle(std::span(units), random);
  std::vector<MicrobatchId> all;
  for (std::size_t i = 0; i < units.size(); ++i) all.push_back(static_cast<MicrobatchId>(i));
  std::vector<std::vector<TemplateSlot>> order;
  const int stages = fixed.deployment.front().stages();
  for (int s = 0; s < stages; ++s) {
    order.emplace_back();
    for (const ComputeSlot& slot : one_forward_one_backward_order(all, s, stages)) {
      const auto [bucket, clock] = units[static_cast<std::size_t>(slot.microbatch)];
      order.back().push_back({slot.kind == Kind::backward, bucket, clock});
    }
  }
  return order;
}

/// hTasks all at once, queued, or in turns of some.
inline void draw_turns(FixedPlan& fixed) {
  const int kind = *rc::gen::inRange(0, 4);
  if (kind < 2) queue_htasks(fixed);
  if (kind == 2)
    fixed.schedule.turns = any_grouping<std::int32_t>(static_cast<std::int32_t>(fixed.htasks.size()), false);
}

/// Samples whole, cut, in packs, or in packs that are cut.
inline void draw_alignment(const workload::Workload& workload, FixedPlan& fixed) {
  std::vector<std::int64_t> lengths;
  for (const workload::Task& task : workload.tasks) lengths.push_back(task.sample_tokens());
  // Samples that are cut do not go through interleaved stages.
  if (fixed.schedule.pipeline != PipelineTemplate::interleaved && *rc::gen::inRange(0, 3) == 0)
    fixed.batching.chunk_size = kChunkUnit * *rc::gen::inRange(1, 9);
  if (*rc::gen::inRange(0, 3) == 0)
    fixed.batching.pack_length =
        *rc::gen::inRange(1, 4) *
        pack_length_for(lengths, fixed.batching.chunk_size > 0 ? fixed.batching.chunk_size : kChunkUnit);
}

/// Where a bucket's clock may hold several hTasks.
inline bool has_clocks(const FixedPlan& fixed) {
  return fixed.schedule.pipeline == PipelineTemplate::structured || fixed.schedule.pipeline == PipelineTemplate::stream;
}

/// Of each stage by itself; likewise in all replicas.
inline void draw_recomputation(std::vector<ReplicaShape>& deployment) {
  if (*rc::gen::arbitrary<bool>()) return;
  std::vector<costmodel::Recompute> recompute;
  for (std::int32_t s = 0; s < deployment.front().stages(); ++s) {
    const auto kind = *rc::gen::element(costmodel::RecomputeKind::none, costmodel::RecomputeKind::selective,
                                        costmodel::RecomputeKind::full);
    recompute.push_back({kind, *rc::gen::inRange<std::int64_t>(0, deployment.front().layers_of(s) + 1)});
  }
  for (ReplicaShape& replica : deployment) replica.recompute = recompute;
}

inline RandomPlan any_plan() {
  RandomPlan made;
  made.gpu = *rc::gen::element<std::string>("a40", "h100");
  made.slow_links = *rc::gen::arbitrary<bool>();
  if (*rc::gen::inRange(0, 3) == 0) made.attention = costmodel::AttentionKind::eager;
  made.workload.backbone = any_backbone();
  const int tasks = *rc::gen::inRange(1, 5);
  for (int t = 0; t < tasks; ++t) made.workload.tasks.push_back(any_task(t, made.sizes.emplace_back()));

  FixedPlan& fixed = made.fixed;
  fixed.schedule.pipeline =
      *rc::gen::element(PipelineTemplate::one_forward_one_backward, PipelineTemplate::gpipe,
                        PipelineTemplate::one_by_one, PipelineTemplate::lora_1f1b, PipelineTemplate::lora_gpipe,
                        PipelineTemplate::structured, PipelineTemplate::stream, PipelineTemplate::interleaved);
  const std::int64_t layers = made.workload.backbone.layers;
  const std::int64_t tp = *rc::gen::element(1, 1, 2, 4);
  // A stream is of one replica.
  const std::int64_t replicas = streams(fixed) ? 1 : *rc::gen::element(1, 1, 2, 3);
  const auto stages = *rc::gen::inRange<std::int64_t>(1, std::min<std::int64_t>(layers, 4) + 1);
  const bool interleaves = fixed.schedule.pipeline == PipelineTemplate::interleaved && stages > 1;
  fixed.deployment =
      deploy(layers, tp, stages, replicas, interleaves ? *rc::gen::inRange<std::int64_t>(1, layers / stages + 1) : 1);
  if (!interleaves && *rc::gen::arbitrary<bool>()) {
    const std::vector<LayerRange> split = any_layers(layers, stages);
    for (ReplicaShape& replica : fixed.deployment) replica.layers = split;
  }
  draw_recomputation(fixed.deployment);
  if (*rc::gen::arbitrary<bool>()) share_tokens(fixed.deployment);
  fixed.htasks = any_grouping<TaskIndex>(tasks, *rc::gen::arbitrary<bool>());
  draw_turns(fixed);
  const bool queued = !fixed.schedule.turns.empty() && fixed.schedule.turns.size() == fixed.htasks.size();
  fixed.buckets = any_grouping<std::int32_t>(static_cast<std::int32_t>(fixed.htasks.size()), queued);
  fixed.batching.padding = *rc::gen::element(Padding::none, Padding::max_length, Padding::longest);
  fixed.batching.microbatches = *rc::gen::inRange(1, 9);
  if (streams(fixed)) fixed.schedule.steps_per_window = *rc::gen::element(1, 2, 8);
  draw_alignment(made.workload, fixed);
  fixed.batching.skips_padding = *rc::gen::arbitrary<bool>();
  fixed.adapter_kernels = *rc::gen::element(costmodel::AdapterKernels::separate, costmodel::AdapterKernels::split,
                                            costmodel::AdapterKernels::side_by_side, costmodel::AdapterKernels::fused);
  if (fixed.schedule.pipeline == PipelineTemplate::structured) fixed.schedule.order = any_template(fixed);
  fixed.shards_weights = tp == 1 && stages == 1 && *rc::gen::arbitrary<bool>();

  BoundScope& scope = made.scope;
  scope.deployment = fixed.deployment;
  scope.padding = fixed.batching.padding;
  scope.least_chunk = scope.most_chunk = fixed.batching.chunk_size;
  scope.packs = fixed.batching.pack_length > 0 && fixed.batching.chunk_size == 0;
  scope.skips_padding = fixed.batching.skips_padding;
  scope.kernels = fixed.adapter_kernels;
  scope.one_by_one = queued;
  scope.shares_microbatches = fixed.htasks.size() < made.workload.tasks.size() || has_clocks(fixed);
  scope.joins_htasks = has_clocks(fixed) && fixed.buckets.size() < fixed.htasks.size();
  scope.gathers_weights = fixed.shards_weights;
  scope.drains = !streams(fixed);
  scope.microbatches = fixed.batching.microbatches;
  return made;
}

}  // namespace braid::planner::testing

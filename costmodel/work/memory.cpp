#include "costmodel/work/memory.h"

#include <algorithm>

namespace braid::costmodel {
namespace {

constexpr Bytes kFloat = 4;

/// What the backward pass of the adapters reads of their own results, in one layer.
std::int64_t adapter_numbers(const BackboneShape& shard, const MicrobatchLoad& load) {
  std::int64_t numbers = 0;
  for (const TaskRows& task : load.tasks) numbers += task.tokens * kept_width(task.adapter, shard);
  return numbers;
}

/// Adds up tensors as the allocator gives them out.
class Tensors {
 public:
  explicit Tensors(const Storage& storage) : storage_(storage) {}

  Tensors& add(std::int64_t numbers, std::int64_t times = 1) {
    return add_bytes(numbers * bytes_of(storage_.activations), times);
  }
  Tensors& add_statistics(std::int64_t numbers, std::int64_t times = 1) {
    return add_bytes(numbers * bytes_of(storage_.statistics), times);
  }
  Tensors& add_bytes(Bytes size, std::int64_t times) {
    constexpr Bytes kSmall = Bytes{10} << 20;
    const bool rounds = storage_.block > 1 && size > kSmall;
    bytes_ += times * (rounds ? (size + storage_.block - 1) / storage_.block * storage_.block : size);
    return *this;
  }
  Bytes bytes() const { return bytes_; }

 private:
  const Storage& storage_;
  Bytes bytes_ = 0;
};

/// What autograd keeps for the gradients of A: the input, or with dropout, which each module draws for itself, the
/// masked input and the mask. The feed-forward's last product reads what lies between its products: not kept unless
/// `middle` is.
void add_adapter_inputs(const BackboneShape& shard, const MicrobatchLoad& load, const Storage& storage, bool middle,
                        Tensors& tensors) {
  for (const ModuleGroup group : kModuleGroups) {
    // Attention keeps its result itself.
    const bool reads_middle = group == ModuleGroup::o || group == ModuleGroup::down;
    if (group != ModuleGroup::o && (middle || !reads_middle) && keeps_input(load, group, storage))
      tensors.add(load.tokens * (group == ModuleGroup::down ? shard.intermediate : shard.hidden));
    for (const TaskRows& task : load.tasks) {
      if (task.adapter.dropout <= 0) continue;
      const auto [in, out_sum, rank, modules] = adapter_shape(shard, task.adapter, group);
      tensors.add(task.tokens * in, modules).add_bytes(task.tokens * in * kMaskBytes, modules);
    }
  }
}

/// Attention's result, and what its gradient reads of the scores: log sums; or of eager attention the softmax's result,
/// which is in f32, and its copy in the type that values are multiplied in.
void add_attention(const BackboneShape& shard, const MicrobatchLoad& load, const Storage& storage, Tensors& tensors) {
  tensors.add(load.tokens * shard.query_width());
  if (storage.attention == AttentionKind::flash) {
    tensors.add_statistics(load.tokens * shard.heads);
    return;
  }
  const std::int64_t scores = score_numbers(shard, load);
  tensors.add_bytes(scores * bytes_of(DataType::f32), 1);
  if (storage.activations != DataType::f32) tensors.add(scores);
}

}  // namespace

std::int64_t score_numbers(const BackboneShape& shard, const MicrobatchLoad& load) {
  std::int64_t scores = 0;
  for (const SequenceLoad& sequence : load.sequences)
    scores += shard.heads * (sequence.context - sequence.prefix) * sequence.context;
  return scores;
}

bool keeps_input(const MicrobatchLoad& load, ModuleGroup group, const Storage& storage) {
  if (!storage.keeps_operator_inputs) return false;
  // LLM.int8() keeps its input whoever reads it.
  if (storage.weights == DataType::int8) return true;
  return std::any_of(load.tasks.begin(), load.tasks.end(), [&](const TaskRows& task) {
    return task.adapter.dropout == 0 && task.tokens > 0 && targets_any(task.adapter, group);
  });
}

Bytes layer_stash_bytes(const BackboneShape& backbone, const StageShape& stage, const MicrobatchLoad& load,
                        const Storage& storage, RecomputeKind recompute) {
  const BackboneShape shard = shard_of(backbone, stage.tp);
  const std::int64_t tokens = load.tokens, hidden = shard.hidden;
  const std::int64_t between = stage.sequence_parallel ? (tokens + stage.tp - 1) / stage.tp : tokens;
  const bool all = recompute == RecomputeKind::none;
  Tensors tensors(storage);
  tensors.add(between * hidden);
  if (recompute == RecomputeKind::full) {
    for (const SequenceLoad& sequence : load.sequences) {
      if (sequence.continues) tensors.add(2 * (sequence.context - sequence.prefix) * shard.kv_width());
    }
    return tensors.bytes();
  }
  for (const LayerOp& op : layer_ops(shard)) {
    const bool stays = op.kept && (all || !recomputed_selectively(op.work));
    switch (op.work) {
      case LayerWork::norm:
        // The rows' scales; a layer norm's means too.
        tensors.add_statistics(between, shard.gated() ? 1 : 2);
        break;
      case LayerWork::head_norm:
        // Queries and keys before it, and its scales.
        tensors.add(tokens * shard.query_width()).add(tokens * shard.kv_width());
        tensors.add_statistics(tokens * (shard.heads + shard.kv_heads));
        break;
      case LayerWork::attention:
        if (stays) add_attention(shard, load, storage, tensors);
        break;
      case LayerWork::residual:
        if (stays) tensors.add(between * width(shard, op.to));
        break;
      case LayerWork::linear:
        if (stays) tensors.add(tokens * width(shard, op.to));
        break;
      case LayerWork::rope:        // turns in place
      case LayerWork::activation:  // is no part of the stash, or an adapter's input
        break;
    }
  }
  if (storage.keeps_operator_inputs) {
    // The gate's activation, for the gradient of its product with the other half.
    if (all && shard.gated() && !storage.fused_activation) tensors.add(tokens * shard.intermediate);
    add_adapter_inputs(shard, load, storage, all, tensors);
  }
  tensors.add(adapter_numbers(shard, load));
  return tensors.bytes();
}

Bytes backbone_bytes(const BackboneShape& backbone, const StageShape& stage, const Storage& storage) {
  const BackboneShape shard = shard_of(backbone, stage.tp);
  const std::int64_t copies = storage.packed_twice ? 2 : 1;
  const std::int64_t held = storage.widens_products ? 1 : copies;
  std::int64_t products = stage.layers * held * shard.linear_parameters();
  std::int64_t others = stage.layers * shard.vector_parameters();
  if (stage.has_embedding) others += shard.embedding_parameters();
  if (stage.has_embedding && stage.layers > 0 && held == 2) products -= shard.hidden * shard.qkv_width();
  // A tied head shares the embedding's table where both are here.
  const bool shares_table = shard.tied_head && stage.has_embedding && storage.shares_tied_table;
  if (stage.has_head) others += shard.norm_parameters() + (shares_table ? 0 : copies * shard.vocabulary * shard.hidden);
  return weight_bytes(storage.weights, products) + others * bytes_of(storage.activations);
}

WeightUnits weight_units(const BackboneShape& backbone, const StageShape& stage, const Storage& storage) {
  StageShape rest = stage;
  rest.layers = 0;
  return {backbone_bytes(backbone, {1, false, false, stage.tp}, storage), backbone_bytes(backbone, rest, storage)};
}

Bytes adapter_bytes(const BackboneShape& backbone, const AdapterShape& adapter, std::int64_t layers) {
  const Bytes trained = 4 * kFloat * layers * adapter.layer_parameters(backbone);
  switch (adapter.method) {
    case AdapterMethod::vera: {
      // A and B, once.
      ModuleShape largest;
      for (const Module module : kModules) {
        if (!adapter.has(module)) continue;
        largest.in = std::max(largest.in, module_shape(backbone, module).in);
        largest.out = std::max(largest.out, module_shape(backbone, module).out);
      }
      return trained + (layers > 0 ? kFloat * adapter.rank * (largest.in + largest.out) : 0);
    }
    case AdapterMethod::diff_pruning:
      // A row and a column of each number.
      return trained + 2 * kFloat * layers * adapter.layer_parameters(backbone);
    case AdapterMethod::lora:
    case AdapterMethod::dora:
    case AdapterMethod::ia3:
    case AdapterMethod::prefix_tuning:
    case AdapterMethod::bottleneck:
      break;
  }
  return trained;
}

Bytes stash_bytes(const BackboneShape& backbone, const StageShape& stage, const MicrobatchLoad& load,
                  const Storage& storage) {
  const std::int64_t recomputed = stage.recompute.any() ? std::min(stage.recompute.layers, stage.layers) : 0;
  Bytes bytes = 0;
  if (recomputed < stage.layers)
    bytes += (stage.layers - recomputed) * layer_stash_bytes(backbone, stage, load, storage, RecomputeKind::none);
  if (recomputed > 0) bytes += recomputed * layer_stash_bytes(backbone, stage, load, storage, stage.recompute.kind);
  // The gradient that the loss sends down.
  if (stage.has_head) bytes += Tensors(storage).add(load.tokens * backbone.hidden).bytes();
  return bytes;
}

Bytes chunk_gradient_bytes(const BackboneShape& backbone, const StageShape& stage, const MicrobatchLoad& load,
                           const Storage& storage) {
  const BackboneShape shard = shard_of(backbone, stage.tp);
  std::int64_t numbers = 0;
  for (const SequenceLoad& sequence : load.sequences) numbers += 2 * shard.kv_width() * sequence.prefix;
  return stage.layers * numbers * bytes_of(storage.activations);
}

Bytes message_bytes_per_token(const BackboneShape& backbone, const Storage& storage) {
  return bytes_of(storage.activations) * backbone.hidden;
}

}  // namespace braid::costmodel

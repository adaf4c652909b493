#include "costmodel/memory.h"

#include <algorithm>

namespace braid::costmodel {
namespace {

constexpr Bytes kFloat = 4;

/// Low-rank products A x that the backward pass of the adapters reads, in one layer.
std::int64_t low_rank_numbers(const BackboneShape& backbone, const StageShape& stage, const MicrobatchLoad& load) {
  std::int64_t numbers = 0;
  for (const TaskRows& task : load.tasks) {
    for (const ModuleGroup group : kModuleGroups) {
      const OperatorShape shape = lora_shape(backbone, task.adapter, group, stage.tp);
      numbers += task.tokens * shape[2] * shape[3];
    }
  }
  return numbers;
}

}  // namespace

Storage gpu_storage(DataType type) {
  constexpr Bytes kContext = 400'000'000;
  return {type, activation_type(type), false, true, kContext};
}

Bytes backbone_bytes(const BackboneShape& backbone, const StageShape& stage, const Storage& storage) {
  const BackboneShape shard = shard_of(backbone, stage.tp);
  const std::int64_t copies = storage.packed_twice ? 2 : 1;
  std::int64_t numbers = stage.layers * (copies * shard.linear_parameters() + shard.vector_parameters());
  if (stage.has_embedding) numbers += shard.embedding_parameters();
  if (stage.has_embedding && stage.layers > 0 && storage.packed_twice) numbers -= shard.hidden * shard.qkv_width();
  // A tied head shares the embedding's table where both are here.
  const bool shares_table = shard.tied_head && stage.has_embedding && !storage.packed_twice;
  if (stage.has_head)
    numbers += shard.norm_parameters() + (shares_table ? 0 : copies * shard.vocabulary * shard.hidden);
  return numbers * bytes_of(storage.weights);
}

Bytes adapter_bytes(const BackboneShape& backbone, const AdapterShape& adapter, std::int64_t layers) {
  return 4 * kFloat * layers * adapter.layer_parameters(backbone);
}

Bytes stash_bytes(const BackboneShape& backbone, const StageShape& stage, const MicrobatchLoad& load,
                  const Storage& storage) {
  // Two residual inputs with their norm scales, q k v after rotation, attention output and log sums, gate and up.
  std::int64_t token = 2 * backbone.hidden + 2 + backbone.qkv_width() + backbone.query_width() + backbone.heads +
                       2 * backbone.intermediate;
  // The norms' results, which adapters read, and the activation's.
  if (storage.keeps_operator_inputs) token += 2 * backbone.hidden + backbone.intermediate;
  std::int64_t numbers = stage.layers * (load.tokens * token + low_rank_numbers(backbone, stage, load));
  if (stage.has_head) numbers += load.tokens * backbone.hidden;  // the gradient that the loss sends down
  return numbers * bytes_of(storage.activations);
}

Bytes workspace_bytes(const BackboneShape& backbone, const StageShape& stage, const MicrobatchLoad& load,
                      const Storage& storage) {
  // Forward: hidden state, normed input, activation. Backward: three hidden-sized gradients, d_activation, d_gate_up
  // (over gate_up itself), dqkv, and the activation again. The larger of the two, and the head's logits.
  const std::int64_t forward = 2 * backbone.hidden + backbone.intermediate;
  const std::int64_t backward =
      3 * backbone.hidden + backbone.intermediate + backbone.qkv_width() + backbone.query_width();
  std::int64_t numbers = load.tokens * std::max(forward, backward);
  if (stage.has_head) {
    const std::int64_t rows = std::min(kHeadRows, load.scored);
    numbers = std::max(numbers, load.tokens * backbone.hidden + rows * (backbone.vocabulary + 3 * backbone.hidden));
  }
  return numbers * bytes_of(storage.activations);
}

Bytes message_bytes_per_token(const BackboneShape& backbone, const Storage& storage) {
  return bytes_of(storage.activations) * backbone.hidden;
}

}  // namespace braid::costmodel

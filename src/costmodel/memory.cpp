#include "costmodel/memory.h"

#include <algorithm>

namespace braid::costmodel {
namespace {

constexpr Bytes kFloat = 4;

/// Low-rank products A x that the backward pass of the adapters reads, in one layer.
std::int64_t low_rank_numbers(const BackboneShape& backbone, const MicrobatchLoad& load) {
  std::int64_t numbers = 0;
  for (const TaskRows& task : load.tasks) {
    for (const ModuleGroup group : kModuleGroups) {
      const OperatorShape shape = lora_shape(backbone, task.adapter, group);
      numbers += task.tokens * shape[2] * shape[3];
    }
  }
  return numbers;
}

}  // namespace

Bytes backbone_bytes(const BackboneShape& backbone, const StageShape& stage) {
  const std::int64_t hidden = backbone.hidden;
  const std::int64_t qkv = hidden * backbone.qkv_width();
  const std::int64_t linears = qkv + backbone.query_width() * hidden + 3 * hidden * backbone.intermediate;
  std::int64_t numbers = stage.layers * (2 * linears + 2 * hidden + (backbone.qkv_bias ? backbone.qkv_width() : 0));
  if (stage.has_embedding) numbers += backbone.embedding_parameters() - (stage.layers > 0 ? qkv : 0);
  if (stage.has_head) numbers += 2 * backbone.vocabulary * hidden + hidden;
  return numbers * kFloat;
}

Bytes adapter_bytes(const BackboneShape& backbone, const AdapterShape& adapter, std::int64_t layers) {
  return 4 * kFloat * layers * adapter.layer_parameters(backbone);
}

Bytes stash_bytes(const BackboneShape& backbone, const StageShape& stage, const MicrobatchLoad& load) {
  // Two residual inputs with their norm scales, q k v after rotation, attention output and log sums, gate and up.
  const std::int64_t token = 2 * backbone.hidden + 2 + backbone.qkv_width() + backbone.query_width() + backbone.heads +
                             2 * backbone.intermediate;
  std::int64_t numbers = stage.layers * (load.tokens * token + low_rank_numbers(backbone, load));
  if (stage.has_head) numbers += load.tokens * backbone.hidden;  // the gradient that the loss sends down
  return numbers * kFloat;
}

Bytes workspace_bytes(const BackboneShape& backbone, const StageShape& stage, const MicrobatchLoad& load) {
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
  return numbers * kFloat;
}

Bytes message_bytes_per_token(const BackboneShape& backbone) {
  return kFloat * backbone.hidden;
}

}  // namespace braid::costmodel

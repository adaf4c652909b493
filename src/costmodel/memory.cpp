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

/// What the adapters on a group need beside its input and output, one task after another, in numbers: a Backward the
/// gradient of A x, and both the input with dropout, as PEFT draws it for each module.
std::int64_t adapter_scratch(const BackboneShape& backbone, const MicrobatchLoad& load, ModuleGroup group, Pass pass) {
  std::int64_t most = 0;
  for (const TaskRows& task : load.tasks) {
    const OperatorShape shape = lora_shape(backbone, task.adapter, group);
    if (shape[3] == 0) continue;
    std::int64_t columns = pass == Pass::backward ? shape[2] * shape[3] : 0;
    if (task.adapter.dropout > 0) columns += shape[0];
    most = std::max(most, task.tokens * columns);
  }
  return most;
}

bool any_adapter(const BackboneShape& backbone, const MicrobatchLoad& load, ModuleGroup group) {
  return std::any_of(load.tasks.begin(), load.tasks.end(),
                     [&](const TaskRows& task) { return lora_shape(backbone, task.adapter, group)[3] > 0; });
}

/// Numbers beside the stash at the fullest moments of a Forward: in the last layer, when all others are stashed, and in
/// the loss.
std::int64_t forward_numbers(const BackboneShape& backbone, const StageShape& stage, const MicrobatchLoad& load,
                             const Storage& storage) {
  const auto scratch = [&](ModuleGroup group) { return adapter_scratch(backbone, load, group, Pass::forward); };
  const std::int64_t hidden = load.tokens * backbone.hidden;
  const std::int64_t activation = load.tokens * backbone.intermediate;
  std::int64_t numbers = hidden;
  if (stage.layers > 0) {
    const std::int64_t normed = storage.keeps_operator_inputs ? 0 : hidden;
    const std::int64_t activated = storage.keeps_operator_inputs ? 0 : activation;
    numbers =
        std::max({numbers, normed + scratch(ModuleGroup::gate_up), hidden + activated + scratch(ModuleGroup::down)});
  }
  if (!stage.has_head) return numbers;
  // The gradient that the loss sends down is part of the stash, and made after the layers.
  const std::int64_t rows = std::min(kHeadRows, load.scored);
  return std::max(numbers - hidden, hidden + rows * (backbone.vocabulary + 3 * backbone.hidden + 1));
}

/// The same of a Backward: in the top layer, when all others are still stashed.
std::int64_t backward_numbers(const BackboneShape& backbone, const StageShape& stage, const MicrobatchLoad& load,
                              const Storage& storage) {
  const auto scratch = [&](ModuleGroup group) { return adapter_scratch(backbone, load, group, Pass::backward); };
  const auto again = [&](ModuleGroup group) {
    return !storage.keeps_operator_inputs && any_adapter(backbone, load, group) ? load.tokens : 0;
  };
  const std::int64_t hidden = load.tokens * backbone.hidden;
  const std::int64_t activation = load.tokens * backbone.intermediate;
  const std::int64_t gradient = stage.has_head ? 0 : hidden;
  if (stage.layers == 0) return gradient;
  const std::int64_t down = activation + again(ModuleGroup::down) * backbone.intermediate + scratch(ModuleGroup::down);
  const std::int64_t gate_up = hidden + again(ModuleGroup::gate_up) * backbone.hidden + scratch(ModuleGroup::gate_up);
  std::int64_t attention = load.tokens * backbone.query_width() + scratch(ModuleGroup::o);
  // Below the bottom layer nothing needs a gradient.
  const bool bottom = stage.has_embedding && stage.layers == 1;
  if (!bottom || any_adapter(backbone, load, ModuleGroup::qkv)) {
    attention =
        std::max(attention, load.tokens * (backbone.query_width() + backbone.qkv_width()) + (bottom ? 0 : hidden) +
                                again(ModuleGroup::qkv) * backbone.hidden + scratch(ModuleGroup::qkv));
  }
  return gradient + std::max({down, gate_up, attention});
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

Bytes workspace_bytes(const BackboneShape& backbone, const StageShape& stage, const MicrobatchLoad& load, Pass pass,
                      const Storage& storage) {
  const auto numbers = pass == Pass::forward ? forward_numbers : backward_numbers;
  return numbers(backbone, stage, load, storage) * bytes_of(storage.activations);
}

Bytes message_bytes_per_token(const BackboneShape& backbone, const Storage& storage) {
  return bytes_of(storage.activations) * backbone.hidden;
}

}  // namespace braid::costmodel

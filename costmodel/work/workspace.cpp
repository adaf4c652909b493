#include <algorithm>

#include "costmodel/work/memory.h"

namespace braid::costmodel {
namespace {

std::int64_t widest_output(const BackboneShape& backbone, const AdapterShape& adapter, ModuleGroup group) {
  std::int64_t widest = 0;
  for (const Module module : targets_of(group))
    if (adapter.has(module)) widest = std::max(widest, module_shape(backbone, module).out);
  return widest;
}

std::int64_t product_width(const BackboneShape& backbone, ModuleGroup group) {
  std::int64_t width = 0;
  for (const Module module : modules_of(backbone, group)) width += module_shape(backbone, module).out;
  return width;
}

/// What one task's adapter on a group needs in a pass beside its input and output and what it keeps, in numbers a row.
/// With dropout that is the masked input, as PEFT draws it for each module, in autograd before and after the mask.
std::int64_t scratch_columns(const BackboneShape& backbone, const AdapterShape& adapter, ModuleGroup group, Pass pass,
                             const Storage& storage) {
  const bool forward = pass == Pass::forward;
  const std::int64_t copies = forward ? !storage.keeps_operator_inputs : 1 + storage.keeps_operator_inputs;
  const std::int64_t masked = adapter.dropout > 0 ? copies * adapter_shape(backbone, adapter, group)[0] : 0;
  const std::int64_t ranks = low_rank_width(adapter, group);
  switch (adapter.method) {
    case AdapterMethod::lora:
      return (forward ? 0 : ranks) + (storage.drops_in_products ? 0 : masked);
    case AdapterMethod::dora:
      // The frozen product of the masked input, or what goes back through it.
      return (forward ? 0 : ranks) + masked + (masked > 0 ? product_width(backbone, group) : 0);
    case AdapterMethod::vera: {
      const std::int64_t up = adapter.rank + widest_output(backbone, adapter, group);
      return forward ? up + masked : adapter.rank + std::max(up, masked);
    }
    case AdapterMethod::bottleneck:
      return forward ? 0 : 2 * ranks;
    case AdapterMethod::ia3:
    case AdapterMethod::diff_pruning:
    case AdapterMethod::prefix_tuning:
      break;
  }
  return 0;
}

/// The same of the tasks, one after another. DoRA's norms are made anew after every step, of A W. Our own executor
/// makes LoRA's products of all tasks in one call, so that what lies between A and B is there of all of them going
/// back.
std::int64_t adapter_scratch(const BackboneShape& backbone, const MicrobatchLoad& load, ModuleGroup group, Pass pass,
                             const Storage& storage) {
  std::int64_t most = 0;
  if (!storage.keeps_operator_inputs && pass != Pass::forward) {
    std::int64_t between = 0, masked = 0;
    for (const TaskRows& task : load.tasks) {
      if (task.adapter.method != AdapterMethod::lora || adapter_shape(backbone, task.adapter, group)[3] == 0) continue;
      const std::int64_t ranks = low_rank_width(task.adapter, group);
      between += task.tokens * ranks;
      masked = std::max(masked, task.tokens * (scratch_columns(backbone, task.adapter, group, pass, storage) - ranks));
    }
    most = between + masked;
  }
  for (const TaskRows& task : load.tasks) {
    if (adapter_shape(backbone, task.adapter, group)[3] == 0) continue;
    most = std::max(most, task.tokens * scratch_columns(backbone, task.adapter, group, pass, storage));
    if (pass != Pass::forward || task.adapter.method != AdapterMethod::dora) continue;
    for (const Module module : targets_of(group))
      if (task.adapter.has(module))
        most = std::max(most, task.adapter.rank_of(module) * product_width(backbone, group));
  }
  return most;
}

bool any_adapter(const MicrobatchLoad& load, ModuleGroup group) {
  return std::any_of(load.tasks.begin(), load.tasks.end(),
                     [&](const TaskRows& task) { return targets_any(task.adapter, group); });
}

std::int64_t logit_numbers(const BackboneShape& backbone, const MicrobatchLoad& load, const Storage& storage) {
  if (!storage.whole_logits) return std::min(kHeadRows, load.scored) * (backbone.vocabulary + 3 * backbone.hidden + 2);
  const std::int64_t widened = bytes_of(DataType::f32) / bytes_of(storage.activations);
  const std::int64_t copies = storage.loss_in_place ? 2 + widened : 1 + 3 * widened;
  return head_rows(load, storage) * (copies * backbone.vocabulary + backbone.hidden);
}

/// Numbers beside the stash at the fullest moment of a Forward's layers: in the last one, when all others are stashed.
std::int64_t forward_numbers(const BackboneShape& backbone, const StageShape& stage, const MicrobatchLoad& load,
                             const Storage& storage) {
  const auto scratch = [&](ModuleGroup group) {
    return adapter_scratch(backbone, load, group, Pass::forward, storage);
  };
  const std::int64_t hidden = load.tokens * backbone.hidden;
  const std::int64_t activation = load.tokens * backbone.intermediate;
  std::int64_t numbers = hidden;
  if (stage.layers > 0) {
    if (storage.attention == AttentionKind::eager) {
      // Masked scores, and what they were before; or of bf16 their cast for the softmax.
      const std::int64_t copies = storage.activations == DataType::bf16 ? 3 : 2;
      numbers = std::max(numbers, copies * score_numbers(backbone, load));
    }
    const std::int64_t normed = keeps_input(load, ModuleGroup::gate_up, storage) ? 0 : hidden;
    const std::int64_t activated = keeps_input(load, ModuleGroup::down, storage) ? 0 : activation;
    // A bottleneck after the layer keeps its input when the activation has gone, and then makes one of its own.
    std::int64_t kept_later = 0, between = 0;
    for (const TaskRows& task : load.tasks) {
      if (task.adapter.method != AdapterMethod::bottleneck || !targets_any(task.adapter, ModuleGroup::down)) continue;
      kept_later += task.tokens * kept_width(task.adapter, backbone, ModuleGroup::down);
      between = std::max(between, task.tokens * task.adapter.rank);
    }
    numbers = std::max({numbers, normed + scratch(ModuleGroup::gate_up) - kept_later,
                        hidden + activated + scratch(ModuleGroup::down) - kept_later, hidden + between});
  }
  return numbers;
}

/// The same of a Backward, in the top layer, when all others are still stashed.
struct BackwardNumbers {
  std::int64_t gradient = 0;      ///< of the layer's output, all the while
  std::int64_t feed_forward = 0;  ///< the most beside it that this half of the layer takes
  std::int64_t attention = 0;
  std::int64_t most() const { return gradient + std::max(feed_forward, attention); }
};
BackwardNumbers backward_numbers(const BackboneShape& backbone, const StageShape& stage, const MicrobatchLoad& load,
                                 const Storage& storage) {
  const auto scratch = [&](ModuleGroup group) {
    return adapter_scratch(backbone, load, group, Pass::backward, storage);
  };
  const auto again = [&](ModuleGroup group) {
    return !storage.keeps_operator_inputs && any_adapter(load, group) ? load.tokens : 0;
  };
  const std::int64_t hidden = load.tokens * backbone.hidden;
  const std::int64_t activation = load.tokens * backbone.intermediate;
  const std::int64_t gradient = stage.has_head ? 0 : hidden;
  if (stage.layers == 0) return {gradient, 0, 0};
  // Where adapters change a product's output, its gradient stands apart from the sum's.
  const auto apart = [&](ModuleGroup group) {
    const bool changed = std::any_of(load.tasks.begin(), load.tasks.end(),
                                     [&](const TaskRows& task) { return changes_output(task.adapter, group); });
    return !storage.keeps_operator_inputs && changed ? hidden : 0;
  };
  const std::int64_t down = apart(ModuleGroup::down) + activation + again(ModuleGroup::down) * backbone.intermediate +
                            scratch(ModuleGroup::down);
  const std::int64_t gate_up = hidden + again(ModuleGroup::gate_up) * backbone.hidden + scratch(ModuleGroup::gate_up);
  std::int64_t attention = apart(ModuleGroup::o) + load.tokens * backbone.query_width() + scratch(ModuleGroup::o);
  if (storage.attention == AttentionKind::eager) {
    // Of the softmax: the gradient of its result and that times it, in f32, and that of the scores.
    const std::int64_t widened = bytes_of(DataType::f32) / bytes_of(storage.activations);
    const std::int64_t copies = 2 * widened + (storage.activations == DataType::f16 ? 1 : widened);
    attention += copies * score_numbers(backbone, load);
  }
  // Our own executor lets go of what has been gone back through: by then of the feed-forward's products, and then of
  // the gradient of attention's result.
  const bool lets_go = !storage.keeps_operator_inputs;
  if (lets_go) attention -= load.tokens * backbone.up_width();
  // Below the bottom layer nothing needs a gradient.
  const bool bottom = stage.has_embedding && stage.layers == 1;
  const bool prefixed = std::any_of(load.tasks.begin(), load.tasks.end(),
                                    [](const TaskRows& task) { return task.adapter.virtual_tokens() > 0; });
  if (!bottom || prefixed || any_adapter(load, ModuleGroup::qkv)) {
    const std::int64_t d_qkv = load.tokens * backbone.qkv_width();
    std::int64_t d_attended = load.tokens * backbone.query_width();
    // The gradients of what adapters put before each sequence.
    for (const SequenceLoad& sequence : load.sequences) d_attended += 2 * backbone.kv_width() * sequence.virtual_tokens;
    const std::int64_t down_to_input =
        (bottom ? 0 : hidden) + again(ModuleGroup::qkv) * backbone.hidden + scratch(ModuleGroup::qkv);
    const std::int64_t fuller =
        lets_go ? std::max(d_attended, down_to_input) - load.tokens * backbone.up_width() : d_attended + down_to_input;
    attention = std::max(attention, d_qkv + fuller);
  }
  return {gradient, std::max(down, gate_up), attention};
}

/// Layers of the stage above those that are recomputed: nothing is stashed of them by the time that these run, going
/// back, and still, going forward.
std::int64_t layers_above(const StageShape& stage) {
  return std::max<std::int64_t>(0, stage.layers - stage.recompute.layers);
}

/// What a recomputed layer does not keep lives while it runs.
Bytes recomputed_bytes(const BackboneShape& backbone, const StageShape& stage, const MicrobatchLoad& load,
                       const Storage& storage) {
  if (!stage.recompute.any() || stage.layers == 0) return 0;
  const auto stash = [&](RecomputeKind kind) { return layer_stash_bytes(backbone, stage, load, storage, kind); };
  const Bytes whole = stash(RecomputeKind::none);
  return std::max<Bytes>(0, whole - stash(stage.recompute.kind) - layers_above(stage) * whole);
}

/// Of our own executor, moment by moment: a layer recomputed in full goes forward first, beside the keys that it kept;
/// of one that is selectively attention's result comes back when the feed-forward's products have gone.
Bytes own_backward_bytes(const BackboneShape& backbone, const StageShape& stage, const MicrobatchLoad& load,
                         const Storage& storage) {
  const BackboneShape shard = shard_of(backbone, stage.tp);
  const Bytes number = bytes_of(storage.activations);
  const BackwardNumbers numbers = backward_numbers(shard, stage, load, storage);
  const Bytes plain = numbers.most() * number;
  if (!stage.recompute.any() || stage.layers == 0) return plain;
  const Bytes whole = layer_stash_bytes(backbone, stage, load, storage, RecomputeKind::none);
  Bytes again = 0;
  if (stage.recompute.kind == RecomputeKind::full) {
    const std::int64_t forward = forward_numbers(shard, stage, load, storage);
    again = (numbers.gradient + std::max({numbers.feed_forward, numbers.attention, forward})) * number + whole -
            load.tokens * shard.hidden * number;
  } else {
    const std::int64_t attended = load.tokens * (shard.query_width() + shard.heads);
    again = (numbers.gradient + std::max(numbers.feed_forward, numbers.attention + attended)) * number;
  }
  const std::int64_t above = layers_above(stage);
  return above > 0 ? std::max(plain, again - above * whole) : again;
}

}  // namespace

Bytes workspace_bytes(const BackboneShape& backbone, const StageShape& stage, const MicrobatchLoad& load, Pass pass,
                      const Storage& storage) {
  const BackboneShape shard = shard_of(backbone, stage.tp);
  const bool forward = pass == Pass::forward;
  Bytes bytes = 0;
  if (forward) {
    // The gradient that the loss sends down is part of the stash, and made after the layers.
    const std::int64_t made_later = stage.has_head ? load.tokens * shard.hidden : 0;
    bytes = (forward_numbers(shard, stage, load, storage) - made_later) * bytes_of(storage.activations) +
            recomputed_bytes(backbone, stage, load, storage);
  } else if (storage.keeps_operator_inputs) {
    bytes = backward_numbers(shard, stage, load, storage).most() * bytes_of(storage.activations) +
            recomputed_bytes(backbone, stage, load, storage);
  } else {
    bytes = own_backward_bytes(backbone, stage, load, storage);
  }
  // By then all layers are done.
  if (forward && stage.has_head) {
    const std::int64_t loss = load.tokens * shard.hidden + logit_numbers(shard, load, storage);
    bytes = std::max(bytes, loss * bytes_of(storage.activations));
  }
  // int8 weights of the largest product are widened before it.
  if (!forward && storage.keeps_operator_inputs && storage.weights == DataType::int8 && stage.layers > 0)
    bytes += shard.hidden * std::max(shard.up_width(), shard.qkv_width()) * bytes_of(storage.activations);
  if (!forward) bytes += chunk_gradient_bytes(backbone, stage, load, storage);
  return bytes;
}

}  // namespace braid::costmodel

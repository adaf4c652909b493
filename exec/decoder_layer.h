#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "costmodel/work/recompute.h"
#include "exec/adapters/adapter.h"
#include "exec/adapters/kept.h"
#include "exec/batch.h"
#include "exec/buffer.h"
#include "exec/layer_weights.h"
#include "exec/profiling/probe.h"
#include "exec/sharded_pass.h"

namespace braid::exec {

/// What a layer keeps of a microbatch from its forward to its backward pass.
struct LayerStash {
  /// By slot, [T, width of the slot]: those that costmodel::layer_ops keeps, unless the layer is recomputed. Queries
  /// and keys are rotated.
  std::array<Buffer, costmodel::kSlotCount> slots;
  std::array<Buffer, costmodel::kSlotCount> statistics;  ///< [T, 1 or 2], of the norm that writes the slot
  Buffer query_key;                                      ///< [T, (Hq + Hkv) · D], before head norms
  Buffer head_scale;                                     ///< [T, Hq + Hkv], of the head norms
  Buffer log_sum;                                        ///< [T, Hq], of attention
  /// Per module group, per task span.
  std::array<std::vector<AdapterKept>, costmodel::kModuleGroups.size()> adapters;
  /// Per sequence, where the layer is recomputed and later chunks of the sample go on: its tokens' keys and values,
  /// [tokens, 2 Hkv · D].
  std::vector<Buffer> keys;
  /// Per sequence: what later chunks of its sample, on their way back, add to the gradients of its tokens' keys and
  /// values, [tokens, 2 Hkv · D]. Empty where none has come.
  std::vector<Buffer> key_gradients;

  Buffer& at(costmodel::Slot slot) { return slots[static_cast<std::size_t>(slot)]; }
  const Buffer& at(costmodel::Slot slot) const { return slots[static_cast<std::size_t>(slot)]; }
};

/// A sequence of another microbatch in the same layer.
struct EarlierChunk {
  const Batch& batch;
  LayerStash& stash;
  std::size_t sequence = 0;
};

/// A microbatch, and per sequence the chunks with its sample's earlier tokens, in order.
struct LayerBatch {
  const Batch& batch;
  std::vector<std::vector<EarlierChunk>> earlier;
};

/// Everything a layer works with beside its weights.
struct LayerContext {
  const Shard& shard;
  kernels::ConstVector rope_frequencies;
  std::span<const std::unique_ptr<Adapter>> adapters;  ///< per task
  std::span<const std::uint64_t> seeds;                ///< per task, for dropout
  BufferPool& pool;
  Probe& probe;
  bool evaluates = false;  ///< nothing is dropped, and no backward pass follows
};

/// A pass of a packed microbatch through layer `layer`, operator by operator as costmodel::layer_ops lists them, each
/// task's rows through its own adapter (MuxTune §3.2: BaseOp batched, Adapters apart).
///
/// Forward, to the output [T, H]: takes `input` [T, H] over into `stash`. Samples that go on attend to the keys and
/// values in their earlier chunks' stashes. Of what is recomputed so the stash keeps no more than that needs.
std::unique_ptr<ShardedPass> layer_forward(const LayerContext& context, const LayerWeights& weights, std::int32_t layer,
                                           LayerBatch batch, costmodel::RecomputeKind recompute, Buffer input,
                                           LayerStash& stash);

/// Backward, from the gradient of the output [T, H] to that of the input, which at the backbone's first layer nothing
/// needs and is not meant to be read: adds to the adapters' gradients and to `key_gradients` of earlier
/// chunks, which must be there, and uses `stash` up.
std::unique_ptr<ShardedPass> layer_backward(const LayerContext& context, const LayerWeights& weights,
                                            std::int32_t layer, LayerBatch batch, costmodel::RecomputeKind recompute,
                                            Buffer gradient, LayerStash& stash);

}  // namespace braid::exec

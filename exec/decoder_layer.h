#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "exec/adapters/adapter.h"
#include "exec/batch.h"
#include "exec/buffer.h"
#include "exec/layer_weights.h"
#include "exec/profiling/probe.h"

namespace braid::exec {

/// What a layer keeps of a microbatch from its forward to its backward pass.
struct LayerStash {
  Buffer input;         ///< [T, H]
  Buffer input_scale;   ///< [T], of the norm
  Buffer qkv;           ///< [T, (Hq + 2 Hkv) · D], rotated
  Buffer query_key;     ///< [T, (Hq + Hkv) · D], before head norms; empty where the backbone has none
  Buffer head_scale;    ///< [T, Hq + Hkv], of the head norms
  Buffer attention;     ///< [T, Hq · D]
  Buffer log_sum;       ///< [T, Hq]
  Buffer middle;        ///< [T, H], after attention
  Buffer middle_scale;  ///< [T]
  Buffer gate_up;       ///< [T, 2F]
  /// Per module group, per task span: A x, [rows, modules · r].
  std::array<std::vector<Buffer>, 4> low_rank;
  /// Per sequence: what later chunks of its sample, on their way back, add to the gradients of its tokens' keys and
  /// values, [tokens, 2 Hkv · D]. Empty where none has come.
  std::vector<Buffer> key_gradients;
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
  const costmodel::BackboneShape& backbone;
  const std::vector<float>& rope_frequencies;
  std::span<const std::unique_ptr<Adapter>> adapters;  ///< per task
  std::span<const std::uint64_t> seeds;                ///< per task, for dropout
  BufferPool& pool;
  Probe& probe;
};

/// Forward through layer `layer` of a packed microbatch. Takes `input` [T, H] over into `stash` and returns the output
/// [T, H]. Each task's rows go through its own adapter (MuxTune §3.2: BaseOp batched, Adapters apart). Samples that go
/// on attend to the keys and values in their earlier chunks' stashes.
Buffer layer_forward(const LayerContext& context, const LayerWeights& weights, std::int32_t layer,
                     const LayerBatch& batch, Buffer input, LayerStash& stash);

/// Backward: adds to the adapters' gradients and to `key_gradients` of earlier chunks, which must be there, uses
/// `stash` up, and returns the gradient of the input [T, H]. At the backbone's first layer nothing below needs it, and
/// what comes back holds nothing meant to be read.
Buffer layer_backward(const LayerContext& context, const LayerWeights& weights, std::int32_t layer,
                      const LayerBatch& batch, Buffer gradient, LayerStash& stash);

}  // namespace braid::exec

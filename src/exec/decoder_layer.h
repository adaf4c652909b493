#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "exec/adapter.h"
#include "exec/batch.h"
#include "exec/buffer.h"
#include "exec/layer_weights.h"
#include "exec/probe.h"

namespace braid::exec {

/// What a layer keeps of a microbatch from its forward to its backward pass.
struct LayerStash {
  Buffer input;         ///< [T, H]
  Buffer input_scale;   ///< [T], of the norm
  Buffer qkv;           ///< [T, (Hq + 2 Hkv) · D], rotated
  Buffer attention;     ///< [T, Hq · D]
  Buffer log_sum;       ///< [T, Hq]
  Buffer middle;        ///< [T, H], after attention
  Buffer middle_scale;  ///< [T]
  Buffer gate_up;       ///< [T, 2F]
  /// Per module group, per task span: A x, [rows, modules · r].
  std::array<std::vector<Buffer>, 4> low_rank;
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
/// [T, H]. Each task's rows go through its own adapter (MuxTune §3.2: BaseOp batched, Adapters apart).
Buffer layer_forward(const LayerContext& context, const LayerWeights& weights, std::int32_t layer, const Batch& batch,
                     Buffer input, LayerStash& stash);

/// Backward: adds to the adapters' gradients, uses `stash` up, and returns the gradient of the input [T, H]. At the
/// backbone's first layer nothing below needs it, and what comes back holds nothing meant to be read.
Buffer layer_backward(const LayerContext& context, const LayerWeights& weights, std::int32_t layer, const Batch& batch,
                      Buffer gradient, LayerStash& stash);

}  // namespace braid::exec

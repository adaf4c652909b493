#pragma once

#include "costmodel/work/operators.h"
#include "costmodel/work/storage.h"

namespace braid::costmodel {

/// Runtime and libraries of a rank that has such a stage.
inline Bytes context_bytes(const StageShape& stage, const Storage& storage) {
  return storage.context + (stage.has_head ? storage.head_context : 0);
}

/// What a rank holds, item by item. MuxTune Eq. 5 sums these for the whole model, once a task, without tensor
/// parallelism, adapters or optimizer state, and bounds live microbatches by the stages; here each is per stage, so
/// that a walk over a Program can add what lives together.

/// Frozen weights: a packed copy of each linear layer for either direction, the embedding table, norms. The bottom
/// layer's fused q, k, v projection has no backward copy, as nothing below it needs a gradient.
Bytes backbone_bytes(const BackboneShape& backbone, const StageShape& stage, const Storage& storage);

/// The same in the units that shares of it are gathered in (FSDP): `stage.layers` layers alike, and what is of none:
/// the embedding, the last norm and the head. They add up to it where no copies are packed for either direction.
struct WeightUnits {
  Bytes layer = 0;
  Bytes rest = 0;
};
WeightUnits weight_units(const BackboneShape& backbone, const StageShape& stage, const Storage& storage);

/// One task's adapter on `layers` layers with gradient and both AdamW moments.
Bytes adapter_bytes(const BackboneShape& backbone, const AdapterShape& adapter, std::int64_t layers);

/// What a microbatch leaves behind between its Forward and its Backward on a stage. Tensor-parallel shards keep their
/// share of heads and columns, and with sequence parallelism of the rows between.
Bytes stash_bytes(const BackboneShape& backbone, const StageShape& stage, const MicrobatchLoad& load,
                  const Storage& storage);

/// The same of one layer, by what is recomputed of it.
Bytes layer_stash_bytes(const BackboneShape& backbone, const StageShape& stage, const MicrobatchLoad& load,
                        const Storage& storage, RecomputeKind recompute);

/// Scores of all heads' pairs of tokens, causal halves too.
std::int64_t score_numbers(const BackboneShape& shard, const MicrobatchLoad& load);

/// Whether a Forward leaves the input of these layers behind for adapters that read it; those with dropout read a
/// masked copy. Layers of int8 weights always do.
bool keeps_input(const MicrobatchLoad& load, ModuleGroup group, const Storage& storage);

/// The most that a Forward or Backward (`pass`) of a microbatch needs beside its whole stash, freed when it ends. Its
/// result, the next stage's input, is part of it; so is a Backward's input, but not a Forward's, which is stashed.
Bytes workspace_bytes(const BackboneShape& backbone, const StageShape& stage, const MicrobatchLoad& load, Pass pass,
                      const Storage& storage);

/// Gradients of the keys and values that later chunks of the same samples have read: held from the first of those
/// chunks' Backward to this one's. (The keys and values themselves are part of the stash.)
Bytes chunk_gradient_bytes(const BackboneShape& backbone, const StageShape& stage, const MicrobatchLoad& load,
                           const Storage& storage);

/// Hidden state or gradient of one token between stages.
Bytes message_bytes_per_token(const BackboneShape& backbone, const Storage& storage);

/// Rows that the head's logits are computed for at a time.
inline constexpr std::int64_t kHeadRows = 256;

}  // namespace braid::costmodel

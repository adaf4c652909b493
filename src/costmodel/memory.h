#pragma once

#include "costmodel/operators.h"

namespace braid::costmodel {

/// What a rank holds, item by item, in f32 as the CPU executor keeps it. MuxTune Eq. 5 sums these for the whole model
/// and leaves adapters and optimizer out; here each is per stage, so that a walk over a Program can add what lives
/// together.

/// Frozen weights: a packed copy of each linear layer for either direction, the embedding table, norms. The bottom
/// layer's fused q, k, v projection has no backward copy, as nothing below it needs a gradient.
Bytes backbone_bytes(const BackboneShape& backbone, const StageShape& stage);

/// One task's adapter on `layers` layers with gradient and both AdamW moments.
Bytes adapter_bytes(const BackboneShape& backbone, const AdapterShape& adapter, std::int64_t layers);

/// What a microbatch leaves behind between its Forward and its Backward on a stage.
Bytes stash_bytes(const BackboneShape& backbone, const StageShape& stage, const MicrobatchLoad& load);

/// Scratch that a Forward or Backward of a microbatch needs beside its stash, freed when it ends.
Bytes workspace_bytes(const BackboneShape& backbone, const StageShape& stage, const MicrobatchLoad& load);

/// Hidden state or gradient of one token between stages.
Bytes message_bytes_per_token(const BackboneShape& backbone);

/// Rows that the head's logits are computed for at a time.
inline constexpr std::int64_t kHeadRows = 256;

}  // namespace braid::costmodel

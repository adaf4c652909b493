#pragma once

#include <memory>

#include "exec/batch.h"
#include "exec/layer_weights.h"
#include "exec/objectives/pending_losses.h"
#include "exec/profiling/probe.h"
#include "exec/sharded_pass.h"

namespace braid::exec {

/// What the head works with.
struct HeadContext {
  const Shard& shard;
  const StageWeights& weights;
  BufferPool& pool;
  Probe& probe;
  PendingLosses& losses;
};

/// The losses of a batch whose hidden states [T, H] have come to the head, which the objective is told once the
/// device has them. The pass's
/// result is the gradient of the hidden states [T, H], without the objective's late factors; none where it only scores.
///
/// Only rows that are scored are seen, `costmodel::kHeadRows` at a time; as the head is frozen its gradient is taken at
/// once and logits are dropped. Shards of the vocabulary meet twice each time, for the shares of the softmax and for
/// the gradient. `batch`, `hidden` and `objective` must outlive the pass.
std::unique_ptr<ShardedPass> head_pass(const HeadContext& context, const Batch& batch, const Buffer& hidden,
                                       Objective& objective, bool only_scores = false);

}  // namespace braid::exec

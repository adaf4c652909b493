#pragma once

#include <memory>
#include <span>

#include "exec/batch.h"
#include "exec/layer_weights.h"
#include "exec/profiling/probe.h"
#include "exec/sharded_pass.h"

namespace braid::exec {

/// Sums of token losses by task.
struct TaskLoss {
  double sum = 0;  ///< already divided by the supervised tokens of the task's global batch
};

/// What the head works with.
struct HeadContext {
  const Shard& shard;
  const StageWeights& weights;
  BufferPool& pool;
  Probe& probe;
};

/// The losses of a batch whose hidden states [T, H] have come to the head: losses[task] grows by the sum of the task's
/// token losses times loss_scale[task]. The pass's result is the gradient of the hidden states [T, H].
///
/// Only rows that are scored are seen, `costmodel::kHeadRows` at a time; as the head is frozen its gradient is taken at
/// once and logits are dropped. Shards of the vocabulary meet twice each time, for the shares of the softmax and for
/// the gradient. `batch`, `hidden`, `loss_scale` and `losses` must outlive the pass.
std::unique_ptr<ShardedPass> head_pass(const HeadContext& context, const Batch& batch, const Buffer& hidden,
                                       std::span<const double> loss_scale, std::span<TaskLoss> losses);

}  // namespace braid::exec

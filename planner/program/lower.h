#pragma once

#include <functional>
#include <vector>

#include "costmodel/work/recompute.h"
#include "planner/program/orders.h"
#include "planner/program/program.h"

namespace braid::planner {

/// Where the layers are: per replica, per stage. Ranks are numbered replica, then stage, then tp.
struct ReplicaShape {
  std::int32_t tp = 1;
  /// Ascending: per stage; where stages are interleaved, stage s of S holds the entries s, s + S, s + 2 S, ...
  std::vector<LayerRange> layers;
  std::int32_t model_chunks = 1;  ///< that each stage holds (Narayanan et al. 2021, interleaved schedule)
  /// Per stage: of its lowest layers; interleaved, of those of its lowest model chunks. Empty: nothing is recomputed.
  std::vector<costmodel::Recompute> recompute = {};
  /// Between products each of its tp ranks works on a share of the tokens (Korthikanti et al. 2022). Messages between
  /// stages are whole.
  bool sequence_parallel = false;

  bool operator==(const ReplicaShape&) const = default;

  std::int32_t stages() const { return static_cast<std::int32_t>(layers.size()) / model_chunks; }
  const LayerRange& chunk(std::int32_t stage, std::int32_t model_chunk) const {
    return layers[static_cast<std::size_t>(model_chunk * stages() + stage)];
  }
  costmodel::Recompute recompute_of(std::int32_t stage) const {
    return recompute.empty() ? costmodel::Recompute{} : recompute[static_cast<std::size_t>(stage)];
  }
  std::int64_t layers_of(std::int32_t stage) const {
    std::int64_t count = 0;
    for (std::int32_t c = 0; c < model_chunks; ++c) count += chunk(stage, c).count();
    return count;
  }
};

/// What lowering must know of a task.
struct TaskRules {
  bool clips = false;  ///< its Step needs the global norm of its gradients
};

/// What lowering must know of an instance, whatever it computes.
struct LoweringRules {
  std::vector<ReplicaShape> replicas;
  std::vector<TaskRules> tasks;
  Bytes bytes_per_token = 0;                                   ///< of a message between stages
  bool blocking_messages = false;                              ///< as in Program
  std::function<Bytes(TaskIndex, LayerRange)> gradient_bytes;  ///< of a task's adapter on these layers
};

/// A schedule before it is a Program: who computes what, and in which order.
struct Schedule : LoweringRules {
  std::vector<Microbatch> microbatches;         ///< ascending by id
  std::vector<std::vector<StageOrder>> orders;  ///< per replica, per stage
  std::vector<std::int64_t> next_batch;         ///< per task: its global batch that comes first here
  InstructionId first_id = 0;
};

/// Turns compute orders into a Program: adds the messages, and for each task's global batch, after its last backward on
/// a stage, SyncAdapter (where several ranks hold the layers), ReduceNorm (when the task clips) and Step.
///
/// A Step that waits for others stands as late as the step gate allows, just before the first forward of the task's
/// next global batch, so that other tasks' work lies between; of a task without a next one just after the last forward
/// of the other tasks'. One that does not wait stands at once, but no earlier than those of earlier global batches.
/// Groups of the sync stream come in the same order on every rank (see sync_order.h), then by layer. Every global batch
/// in `microbatches` must be whole. Nothing is under way before or after.
Program lower(const Schedule& schedule);

}  // namespace braid::planner

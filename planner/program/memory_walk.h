#pragma once

#include <span>
#include <vector>

#include "costmodel/work/memory.h"
#include "planner/program/program.h"

namespace braid::planner {

/// What the walk must know beside the Program.
struct MemoryContext {
  costmodel::BackboneShape backbone;
  std::vector<costmodel::AdapterShape> adapters;  ///< per task
  costmodel::Storage storage;
  std::int64_t backbone_copies = 1;  ///< resident on every rank: policies without sharing keep one a task
  std::int64_t weight_shards = 1;    ///< ranks that each keep a share of every weight (FSDP)
  bool exact_sums = false;           ///< gradients add up exactly (Workload::reproducible): two doubles each
};

/// The memory of one rank of a stage.
struct StageMemory {
  Bytes backbone = 0;
  Bytes adapters = 0;       ///< with gradients and optimizer state
  Bytes communicators = 0;  ///< their buffers, where shards or replicas meet
  // When the two together take the most:
  Bytes activations = 0;     ///< stashes and scratch
  Bytes messages = 0;        ///< receives posted ahead, and what is on its way out
  std::vector<Bytes> after;  ///< per instruction of the list: all that is held while it runs

  Bytes fixed() const { return backbone + adapters + communicators; }
  Bytes peak() const { return fixed() + messages + activations; }
};

/// What a rank of such a stage holds from beginning to end: weights, adapters, and communicators with its shards and,
/// where it is `replicated`, with other replicas.
StageMemory held_throughout(const costmodel::StageShape& shape, const MemoryContext& context, bool replicated);

/// Walks each stage's list as the executor does. A Forward adds its microbatch's stash, its Backward takes it away,
/// both need scratch while they run. Each channel keeps as many receives posted as messages may wait, from the start;
/// who consumes one posts the next. So a message out finds its receive posted, and goes as soon as both sides have come
/// to the end of an operator: it is gone when the next Forward is at its fullest, in its last layer, and when a message
/// has come from where it went; but still there when a Backward that waited for none is at its fullest, at its start.
/// The same for all times of a Program: nothing here depends on durations.
std::vector<StageMemory> walk_memory(const Program& program, const MemoryContext& context);

}  // namespace braid::planner

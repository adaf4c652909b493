#pragma once

#include <span>
#include <vector>

#include "costmodel/memory.h"
#include "planner/program.h"

namespace braid::planner {

/// What the walk must know beside the Program.
struct MemoryContext {
  costmodel::BackboneShape backbone;
  std::vector<costmodel::AdapterShape> adapters;  ///< per task
  costmodel::Storage storage = {};
  std::int64_t backbone_copies = 1;  ///< resident on every rank: policies without sharing keep one a task
};

/// The memory of one rank of a stage.
struct StageMemory {
  Bytes backbone = 0;
  Bytes adapters = 0;        ///< with gradients and optimizer state
  Bytes messages = 0;        ///< receives posted ahead, and one message on its way out for each channel
  Bytes activations = 0;     ///< the most that stashes and scratch take together
  std::vector<Bytes> after;  ///< per instruction of the list: all that is held while it runs

  Bytes fixed() const { return backbone + adapters + messages; }
  Bytes peak() const { return fixed() + activations; }
};

/// Walks each stage's compute order: a Forward adds its microbatch's stash, its Backward takes it away, both need
/// scratch while they run. The same for all times of a Program: nothing here depends on durations.
std::vector<StageMemory> walk_memory(const Program& program, const MemoryContext& context);

}  // namespace braid::planner

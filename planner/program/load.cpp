#include "planner/program/load.h"

#include <algorithm>

namespace braid::planner {

costmodel::MicrobatchLoad load_of(const Microbatch& microbatch, std::span<const costmodel::AdapterShape> adapters,
                                  costmodel::AdapterKernels kernels) {
  costmodel::MicrobatchLoad load;
  load.kernels = kernels;
  TaskIndex last_task = kNone;
  for (const Segment& segment : microbatch.segments) {
    load.tokens += segment.computed_tokens();
    load.scored += segment.scored;
    for_each_sequence(segment, [&](const SequencePart& part) {
      load.sequences.push_back({part.begin, part.end + part.padding, part.continues,
                                adapters[static_cast<std::size_t>(segment.task)].virtual_tokens()});
    });
    if (segment.task != last_task) load.tasks.push_back({adapters[static_cast<std::size_t>(segment.task)], 0});
    load.tasks.back().tokens += segment.computed_tokens();
    last_task = segment.task;
  }
  return load;
}

costmodel::StageShape shape_of(const StageProgram& stage) {
  const auto tp = static_cast<std::int64_t>(std::max<std::size_t>(stage.ranks.size(), 1));
  return {stage.layer_count(), stage.has_embedding, stage.has_head, tp, stage.sequence_parallel, stage.recompute};
}

costmodel::StageShape shape_of(const StageProgram& stage, const Part& part) {
  costmodel::StageShape shape = shape_of(stage);
  if (!stage.interleaves()) return shape;
  std::int64_t below = 0;
  for (std::int32_t run = 0; run < part.first_subgraph; ++run)
    below += stage.layers[static_cast<std::size_t>(run)].count();
  shape = run_of(shape, below, stage.layers[static_cast<std::size_t>(part.first_subgraph)].count());
  shape.has_embedding = stage.has_embedding && part.first_subgraph == 0;
  shape.has_head = stage.has_head && part.last_subgraph == stage.subgraphs;
  return shape;
}

ProgramLoads::ProgramLoads(const Program& program, std::span<const costmodel::AdapterShape> adapters,
                           costmodel::AdapterKernels kernels)
    : program_(program) {
  loads_.reserve(program.microbatches.size());
  for (const Microbatch& microbatch : program.microbatches) loads_.push_back(load_of(microbatch, adapters, kernels));
}

const costmodel::MicrobatchLoad& ProgramLoads::of(MicrobatchId id) const {
  return loads_[static_cast<std::size_t>(&program_.microbatch(id) - program_.microbatches.data())];
}

}  // namespace braid::planner

#include "planner/memory_walk.h"

#include <algorithm>
#include <map>

#include "planner/dependency_graph.h"
#include "planner/load.h"

namespace braid::planner {
namespace {

Bytes largest_message(const Program& program, std::size_t channel, const MemoryContext& context) {
  Bytes largest = 0;
  const StageProgram& sender = program.stages[static_cast<std::size_t>(program.channels[channel].from)];
  for (const Instruction& instruction : sender.instructions) {
    if (is_send(instruction.kind) && static_cast<std::size_t>(instruction.channel) == channel)
      largest = std::max(largest, instruction.bytes);
  }
  for (const MicrobatchId id : program.before.messages[channel]) {
    largest = std::max(largest, program.microbatch(id).computed_tokens() *
                                    costmodel::message_bytes_per_token(context.backbone, context.storage));
  }
  return largest;
}

/// Follows one stage's list.
class StageWalk {
 public:
  StageWalk(const Program& program, std::size_t index, const MemoryContext& context)
      : program_(program), stage_(program.stages[index]), context_(context), shape_(shape_of(stage_)) {
    for (const MicrobatchId id : program.before.stages[index].live) live_ += stash(id);
  }

  void run(StageMemory& memory) {
    memory.activations = live_;
    for (const Instruction& instruction : stage_.instructions) {
      Bytes scratch = 0;
      for (const Part& part : stage_.parts_of(instruction)) {
        if (instruction.kind == Kind::forward && part.first_subgraph == 0) live_ += stash(part.microbatch);
        scratch = std::max(scratch, workspace(part.microbatch));
      }
      memory.activations = std::max(memory.activations, live_ + scratch);
      memory.after.push_back(memory.fixed() + live_ + scratch);
      for (const Part& part : stage_.parts_of(instruction)) {
        if (instruction.kind == Kind::backward && part.first_subgraph == 0) live_ -= stash(part.microbatch);
      }
    }
  }

 private:
  Bytes stash(MicrobatchId id) {
    return costmodel::stash_bytes(context_.backbone, shape_, load_of(program_.microbatch(id), context_.adapters),
                                  context_.storage);
  }
  Bytes workspace(MicrobatchId id) {
    return costmodel::workspace_bytes(context_.backbone, shape_, load_of(program_.microbatch(id), context_.adapters),
                                      context_.storage);
  }

  const Program& program_;
  const StageProgram& stage_;
  const MemoryContext& context_;
  costmodel::StageShape shape_;
  Bytes live_ = 0;
};

}  // namespace

std::vector<StageMemory> walk_memory(const Program& program, const MemoryContext& context) {
  std::vector<StageMemory> memories(program.stages.size());
  for (std::size_t s = 0; s < memories.size(); ++s) {
    const costmodel::StageShape shape = shape_of(program.stages[s]);
    memories[s].backbone =
        context.backbone_copies * costmodel::backbone_bytes(context.backbone, shape, context.storage) +
        context.storage.context;
    for (const costmodel::AdapterShape& adapter : context.adapters) {
      memories[s].adapters += costmodel::adapter_bytes(context.backbone, adapter, shape.layers);
    }
  }
  const std::vector<std::int64_t> waiting = most_waiting_messages(program);
  for (std::size_t c = 0; c < program.channels.size(); ++c) {
    const Bytes message = largest_message(program, c, context);
    memories[static_cast<std::size_t>(program.channels[c].to)].messages += waiting[c] * message;
    memories[static_cast<std::size_t>(program.channels[c].from)].messages += message;
  }
  for (std::size_t s = 0; s < memories.size(); ++s) StageWalk(program, s, context).run(memories[s]);
  return memories;
}

}  // namespace braid::planner

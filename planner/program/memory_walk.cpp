#include "planner/program/memory_walk.h"

#include <algorithm>
#include <map>

#include "planner/program/dependency_graph.h"
#include "planner/program/load.h"

namespace braid::planner {
namespace {

/// What the executor keeps posted on one channel of a stage.
class PostedReceives {
 public:
  /// `ahead` at a time, of these sizes in turn.
  PostedReceives(std::vector<Bytes> sizes, std::int64_t ahead) : sizes_(std::move(sizes)) {
    for (std::int64_t i = 0; i < std::max<std::int64_t>(ahead, 1); ++i) post();
  }
  void consume(Bytes bytes) {
    held_ -= bytes;
    post();
  }
  Bytes held() const { return held_; }

 private:
  void post() {
    if (posted_ < sizes_.size()) held_ += sizes_[posted_++];
  }

  std::vector<Bytes> sizes_;
  std::size_t posted_ = 0;
  Bytes held_ = 0;
};

/// Follows one stage's list.
class StageWalk {
 public:
  StageWalk(const Program& program, std::size_t index, const MemoryContext& context, const ProgramLoads& loads,
            const std::vector<std::int64_t>& most_waiting)
      : program_(program), stage_(program.stages[index]), context_(context), loads_(loads) {
    for (const MicrobatchId id : program.before.stages[index].live) live_ += stash(shape_of(stage_), id);
    for (const Awaited& awaited : program.before.stages[index].awaited) {
      if (!is_recv(awaited.kind)) continue;
      const Bytes bytes = message(awaited.microbatches.front());
      received_[awaited.id] = {awaited.microbatches.front(), awaited.channel, bytes};
      waiting_ += bytes;
    }
    std::map<ChannelIndex, std::vector<Bytes>> sizes;
    for (const Instruction& instruction : stage_.instructions) {
      if (is_recv(instruction.kind)) sizes[instruction.channel].push_back(instruction.bytes);
    }
    for (auto& [channel, in_turn] : sizes)
      posted_.emplace(channel, PostedReceives(std::move(in_turn), most_waiting[static_cast<std::size_t>(channel)]));
  }

  void run(StageMemory& memory) {
    keep(memory, 0, true);
    for (const Instruction& instruction : stage_.instructions) {
      if (is_send(instruction.kind)) outgoing_[peer(instruction.channel)] += instruction.bytes;
      if (instruction.kind == Kind::forward || instruction.kind == Kind::backward) {
        memory.after.push_back(compute(memory, instruction));
        outgoing_.clear();
      } else {
        memory.after.push_back(keep(memory, 0, true));
      }
    }
  }

 private:
  struct Received {
    MicrobatchId microbatch = 0;
    ChannelIndex channel = kNone;
    Bytes bytes = 0;
  };

  /// Part by part; the results of those that have ended wait for their sends. The most that is held on the way.
  Bytes compute(StageMemory& memory, const Instruction& instruction) {
    const bool forward = instruction.kind == Kind::forward;
    Bytes most = 0, results = 0;
    for (const Part& part : stage_.parts_of(instruction)) {
      take_input(instruction, part.microbatch);
      const costmodel::StageShape shape = shape_of(stage_, part);
      // A stage that is no runs of layers stashes as a whole.
      const bool stashes = stage_.interleaves() || part.first_subgraph == 0;
      if (forward && stashes) live_ += stash(shape, part.microbatch);
      most = std::max(most, keep(memory, results + workspace(shape, part.microbatch, instruction.kind), !forward));
      if (!forward && stashes) live_ -= stash(shape, part.microbatch);
      if (stage_.sends(instruction.kind, part)) results += message(part.microbatch);
    }
    return most;
  }

  /// The stage at the other end.
  StageIndex peer(ChannelIndex index) const {
    const Channel& channel = program_.channels[static_cast<std::size_t>(index)];
    return &program_.stages[static_cast<std::size_t>(channel.from)] == &stage_ ? channel.to : channel.from;
  }

  /// What is held with so much scratch, and with what is `leaving` or without; the most of it goes into `memory`.
  Bytes keep(StageMemory& memory, Bytes scratch, bool leaving) const {
    Bytes messages = waiting_;
    for (const auto& [stage, bytes] : outgoing_) messages += leaving ? bytes : 0;
    for (const auto& [channel, receives] : posted_) messages += receives.held();
    if (live_ + scratch + messages > memory.activations + memory.messages) {
      memory.activations = live_ + scratch;
      memory.messages = messages;
    }
    return memory.fixed() + live_ + scratch + messages;
  }

  /// The microbatch's message becomes part of the stash, or of the scratch. Whoever sent it has come to the end of an
  /// operator, and so taken what went there.
  void take_input(const Instruction& instruction, MicrobatchId microbatch) {
    for (const InstructionId id : stage_.waits_of(instruction)) {
      if (const auto earlier = received_.find(id); earlier != received_.end()) {
        if (earlier->second.microbatch != microbatch) continue;
        waiting_ -= earlier->second.bytes;
        outgoing_.erase(peer(earlier->second.channel));
        received_.erase(earlier);
      }
      if (id < stage_.first_id) continue;
      const Instruction& received = stage_.instructions[static_cast<std::size_t>(id - stage_.first_id)];
      if (!is_recv(received.kind) || received.microbatch != microbatch) continue;
      posted_.at(received.channel).consume(received.bytes);
      outgoing_.erase(peer(received.channel));
    }
  }

  Bytes message(MicrobatchId id) const {
    return program_.microbatch(id).computed_tokens() *
           costmodel::message_bytes_per_token(context_.backbone, context_.storage);
  }
  Bytes stash(const costmodel::StageShape& shape, MicrobatchId id) const {
    return costmodel::stash_bytes(context_.backbone, shape, loads_.of(id), context_.storage);
  }
  Bytes workspace(const costmodel::StageShape& shape, MicrobatchId id, Kind kind) const {
    const auto pass = kind == Kind::forward ? costmodel::Pass::forward : costmodel::Pass::backward;
    return costmodel::workspace_bytes(context_.backbone, shape, loads_.of(id), pass, context_.storage);
  }

  const Program& program_;
  const StageProgram& stage_;
  const MemoryContext& context_;
  const ProgramLoads& loads_;
  std::map<ChannelIndex, PostedReceives> posted_;  // per channel that the stage receives from
  std::map<InstructionId, Received> received_;     // before the slice, and not yet consumed
  Bytes waiting_ = 0;                              // these together
  std::map<StageIndex, Bytes> outgoing_;           // per stage that it goes to
  Bytes live_ = 0;
};

/// With shards, beside its own what is gathered: two layers, of which one computes and one comes, and what is not of a
/// layer, which stays through a pass. Where gathers are waited for, one layer, and all that is not of a layer.
Bytes resident_weights(const MemoryContext& context, const costmodel::StageShape& shape) {
  const Bytes whole = costmodel::backbone_bytes(context.backbone, shape, context.storage);
  if (context.weight_shards <= 1) return whole;
  const costmodel::WeightUnits units = costmodel::weight_units(context.backbone, shape, context.storage);
  const auto share = [&](Bytes bytes) { return (bytes + context.weight_shards - 1) / context.weight_shards; };
  if (!context.storage.gathers_beside) return share(whole - units.rest) + units.layer + units.rest;
  return share(whole) + 2 * units.layer + units.rest;
}

}  // namespace

StageMemory held_throughout(const costmodel::StageShape& shape, const MemoryContext& context, bool replicated) {
  StageMemory memory;
  memory.communicators = ((shape.tp > 1) + replicated) * context.storage.communicator;
  memory.backbone =
      context.backbone_copies * resident_weights(context, shape) + costmodel::context_bytes(shape, context.storage);
  for (const costmodel::AdapterShape& adapter : context.adapters)
    memory.adapters += (context.exact_sums ? 2 : 1) * costmodel::adapter_bytes(context.backbone, adapter, shape.layers);
  return memory;
}

std::vector<StageMemory> walk_memory(const Program& program, const MemoryContext& context) {
  std::vector<StageMemory> memories(program.stages.size());
  const bool replicated = program.stages.back().replica > 0;
  for (std::size_t s = 0; s < memories.size(); ++s)
    memories[s] = held_throughout(shape_of(program.stages[s]), context, replicated);
  const std::vector<std::int64_t> waiting = most_waiting_messages(program);
  const ProgramLoads loads(program, context.adapters);
  for (std::size_t s = 0; s < memories.size(); ++s) StageWalk(program, s, context, loads, waiting).run(memories[s]);
  return memories;
}

}  // namespace braid::planner

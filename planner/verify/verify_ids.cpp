// The rule that everything a Program names is there, so that the other rules can read it.

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "planner/verify/verify.h"

namespace braid::planner::detail {
namespace {

bool in_range(std::int64_t index, std::size_t size) {
  return index >= 0 && static_cast<std::size_t>(index) < size;
}

bool fits(const PoolRange& range, std::size_t size) {
  return range.first <= size && range.count <= size - range.first;
}

/// The first stage and the last, where they are interleaved.
bool closes_ring(const StageProgram& from, const StageProgram& to) {
  return from.interleaves() && ((from.has_head && to.has_embedding) || (from.has_embedding && to.has_head));
}

Stream stream_of(Kind kind, bool blocking_messages) {
  if (kind == Kind::forward || kind == Kind::backward || kind == Kind::step) return Stream::compute;
  if (is_send(kind)) return blocking_messages ? Stream::compute : Stream::send;
  if (is_recv(kind)) return blocking_messages ? Stream::compute : Stream::recv;
  return Stream::sync;
}

class IdRules {
 public:
  IdRules(const Program& program, std::vector<Violation>& violations) : program_(program), violations_(violations) {
    for (const Microbatch& microbatch : program.microbatches) microbatches_.insert(microbatch.id);
  }

  void run() {
    check_tables();
    check_boundary(program_.before, "before");
    check_boundary(program_.after, "after");
    if (!violations_.empty()) return;
    for (std::size_t s = 0; s < program_.stages.size(); ++s) {
      for (std::size_t i = 0; i < program_.stages[s].instructions.size(); ++i) check_instruction(s, i);
    }
  }

 private:
  void bad(std::string message) { violations_.push_back({Rule::ids, std::move(message)}); }

  void check_tables() {
    for (const StageProgram& stage : program_.stages) {
      if (stage.layers.empty() ||
          (stage.interleaves() && stage.layers.size() != static_cast<std::size_t>(stage.subgraphs)))
        bad(fmt::format("{} has {} runs of layers in {} subgraphs", describe(stage), stage.layers.size(),
                        stage.subgraphs));
    }
    check_layers();
    for (std::size_t i = 0; i < program_.microbatches.size(); ++i) {
      const Microbatch& microbatch = program_.microbatches[i];
      if (i > 0 && program_.microbatches[i - 1].id >= microbatch.id)
        bad(fmt::format("microbatch {} is not after the one before it", microbatch.id));
      for (const Segment& segment : microbatch.segments) {
        if (!in_range(segment.task, static_cast<std::size_t>(program_.task_count)))
          bad(fmt::format("microbatch {} has a segment of task {}, of {} tasks", microbatch.id, segment.task,
                          program_.task_count));
        if (segment.begin < 0 || segment.end < segment.begin || segment.padding < 0 || segment.computed_tokens() == 0 ||
            segment.index < 0 || segment.global_batch < 0)
          bad(fmt::format("microbatch {} has a segment [{}, {}) of sample {}", microbatch.id, segment.begin,
                          segment.end, segment.index));
      }
    }
    for (std::size_t c = 0; c < program_.channels.size(); ++c) {
      const Channel& channel = program_.channels[c];
      if (!in_range(channel.from, program_.stages.size()) || !in_range(channel.to, program_.stages.size())) {
        bad(fmt::format("channel {} joins stages that do not exist", c));
        continue;
      }
      const StageProgram& from = program_.stages[static_cast<std::size_t>(channel.from)];
      const StageProgram& to = program_.stages[static_cast<std::size_t>(channel.to)];
      if (from.replica != to.replica || (std::abs(from.stage - to.stage) != 1 && !closes_ring(from, to)))
        bad(fmt::format("channel {} joins stages {} and {}, which are no neighbours", c, channel.from, channel.to));
    }
    for (std::size_t g = 0; g < program_.groups.size(); ++g) {
      std::set<StageIndex> members;
      for (const StageIndex member : program_.groups[g].stages) {
        if (!in_range(member, program_.stages.size())) bad(fmt::format("group {} has a member {}", g, member));
        if (!members.insert(member).second) bad(fmt::format("group {} has stage {} twice", g, member));
      }
    }
  }

  /// Of each replica the first runs of all stages, then the second, ... follow one another; below them is the
  /// embedding, above them the head.
  void check_layers() {
    std::map<std::int32_t, std::vector<const StageProgram*>> replicas;
    for (const StageProgram& stage : program_.stages) replicas[stage.replica].push_back(&stage);
    for (const auto& [replica, stages] : replicas) {
      std::int32_t next = stages.front()->layers.empty() ? 0 : stages.front()->layers.front().first;
      const std::size_t runs = stages.front()->layers.size();
      for (std::size_t run = 0; run < runs; ++run) {
        for (const StageProgram* stage : stages) {
          if (stage->layers.size() != runs || stage->layers[run].first != next || stage->layers[run].count() <= 0) {
            bad(fmt::format("{}: its layers do not follow those of the stage before", describe(*stage)));
            return;
          }
          next = stage->layers[run].last;
        }
      }
      for (const StageProgram* stage : stages) {
        if (stage->has_embedding != (stage == stages.front()) || stage->has_head != (stage == stages.back()))
          bad(fmt::format("{}: the embedding or the head is on the wrong stage", describe(*stage)));
      }
    }
  }

  void check_boundary(const Boundary& boundary, std::string_view which) {
    if (boundary.stages.size() != program_.stages.size() || boundary.messages.size() != program_.channels.size()) {
      bad(fmt::format("the boundary {} is of another Program: {} stages, {} channels", which, boundary.stages.size(),
                      boundary.messages.size()));
      return;
    }
    const auto known = [&](const std::vector<MicrobatchId>& ids) {
      for (const MicrobatchId id : ids) {
        if (!microbatches_.contains(id))
          bad(fmt::format("the boundary {} names microbatch {}, which does not exist", which, id));
      }
    };
    for (const std::vector<MicrobatchId>& messages : boundary.messages) known(messages);
    for (const StageBoundary& stage : boundary.stages) {
      known(stage.live);
      if (stage.next_batch.size() != static_cast<std::size_t>(program_.task_count))
        bad(fmt::format("the boundary {} counts the Steps of {} tasks of {}", which, stage.next_batch.size(),
                        program_.task_count));
      for (std::size_t i = 0; i < stage.awaited.size(); ++i) {
        known(stage.awaited[i].microbatches);
        if (i > 0 && stage.awaited[i - 1].id >= stage.awaited[i].id)
          bad(fmt::format("the boundary {} has awaited ids out of order", which));
      }
    }
  }

  void check_instruction(std::size_t s, std::size_t i) {
    const StageProgram& stage = program_.stages[s];
    const Instruction& instruction = stage.instructions[i];
    const InstructionId id = stage.first_id + static_cast<InstructionId>(i);
    const auto wrong = [&](const std::string& what) {
      bad(fmt::format("{}: {} {} {}", describe(stage), name(instruction.kind), id, what));
    };
    if (!fits(instruction.waits, stage.waits.size()) || !fits(instruction.parts, stage.parts.size())) {
      wrong("has waits or parts past the end of their pools");
      return;
    }
    if (instruction.stream != stream_of(instruction.kind, program_.blocking_messages))
      wrong(fmt::format("stands in the {} stream", name(instruction.stream)));
    for (const InstructionId waited : stage.waits_of(instruction)) {
      if (waited >= id) wrong(fmt::format("waits for {}, which comes later", waited));
      if (waited < stage.first_id && !find_awaited(program_.before.stages[s], waited))
        wrong(fmt::format("waits for {}, which the boundary does not keep", waited));
    }
    for (const Part& part : stage.parts_of(instruction)) {
      if (!microbatches_.contains(part.microbatch))
        wrong(fmt::format("names microbatch {}, which does not exist", part.microbatch));
      if (part.first_subgraph < 0 || part.last_subgraph <= part.first_subgraph || part.last_subgraph > stage.subgraphs)
        wrong(
            fmt::format("computes subgraphs [{}, {}) of {}", part.first_subgraph, part.last_subgraph, stage.subgraphs));
      else if (stage.interleaves() && part.last_subgraph != part.first_subgraph + 1)
        wrong("computes several model chunks at once");
    }
    const bool computes = instruction.kind == Kind::forward || instruction.kind == Kind::backward;
    if (computes != (instruction.parts.count > 0)) wrong(computes ? "computes nothing" : "has parts to compute");
    if (is_send(instruction.kind) || is_recv(instruction.kind)) check_message(s, instruction, wrong);
    if (is_grouped(instruction.kind) && !in_range(instruction.group, program_.groups.size())) wrong("names no group");
    const bool of_task = instruction.kind == Kind::step || instruction.kind == Kind::sync_adapter ||
                         instruction.kind == Kind::reduce_norm;
    if (of_task && !in_range(instruction.task, static_cast<std::size_t>(program_.task_count))) wrong("names no task");
  }

  template <typename Wrong>
  void check_message(std::size_t s, const Instruction& instruction, const Wrong& wrong) {
    if (!in_range(instruction.channel, program_.channels.size())) {
      wrong("names no channel");
      return;
    }
    const Channel& channel = program_.channels[static_cast<std::size_t>(instruction.channel)];
    if (static_cast<std::size_t>(is_send(instruction.kind) ? channel.from : channel.to) != s)
      wrong("uses a channel of other stages");
    // Activations go to the next stage, gradients to the one before.
    const StageProgram& from = program_.stages[static_cast<std::size_t>(channel.from)];
    const StageProgram& to = program_.stages[static_cast<std::size_t>(channel.to)];
    const bool activation = instruction.kind == Kind::send_activation || instruction.kind == Kind::recv_activation;
    const bool goes_on = activation ? to.stage == from.stage + 1 : from.stage == to.stage + 1;
    const bool rounds = closes_ring(from, to) && (activation ? from.has_head : from.has_embedding);
    if (!goes_on && !rounds) wrong("goes the wrong way");
    const std::int32_t runs = program_.stages[s].interleaves() ? program_.stages[s].subgraphs : 1;
    if (instruction.subgraph < 0 || instruction.subgraph >= runs)
      wrong(fmt::format("belongs to subgraph {} of {}", instruction.subgraph, runs));
    if (!microbatches_.contains(instruction.microbatch)) wrong("carries no microbatch");
  }

  const Program& program_;
  std::vector<Violation>& violations_;
  std::set<MicrobatchId> microbatches_;
};

}  // namespace

void verify_ids(const Program& program, std::vector<Violation>& violations) {
  IdRules(program, violations).run();
}

}  // namespace braid::planner::detail

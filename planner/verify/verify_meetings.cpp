// The rules about how stages meet: messages and groups.

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"
#include "planner/verify/known_ended.h"
#include "planner/verify/verify.h"

namespace braid::planner::detail {
namespace {

std::string place(const Program& program, std::size_t stage, std::size_t position) {
  const StageProgram& list = program.stages[stage];
  return fmt::format("{}: {} {}", describe(list), name(list.instructions[position].kind),
                     list.first_id + static_cast<InstructionId>(position));
}

/// What goes over one channel, in order.
struct Message {
  MicrobatchId microbatch = 0;
  std::int32_t hop = 0;  ///< how many times it has gone round the stages before: not 0 only where they are interleaved
  Bytes bytes = kNone;   ///< not known of messages under way
};

/// A message between the last stage and the first belongs to the round that begins or ends with it.
std::int32_t hop_of(const StageProgram& stage, const Instruction& instruction) {
  const bool activation = instruction.kind == Kind::send_activation || instruction.kind == Kind::recv_activation;
  const bool begins_round = activation ? instruction.kind == Kind::recv_activation && stage.has_embedding
                                       : instruction.kind == Kind::send_gradient && stage.has_embedding;
  return begins_round ? instruction.subgraph - 1 : instruction.subgraph;
}

void verify_channels(const Program& program, std::vector<Violation>& violations) {
  const auto bad = [&](std::string message) { violations.push_back({Rule::messages, std::move(message)}); };
  std::vector<std::vector<Message>> sent(program.channels.size()), received(program.channels.size());
  for (std::size_t c = 0; c < sent.size(); ++c) {
    for (const MicrobatchId id : program.before.messages[c]) sent[c].push_back({id, 0, kNone});
  }
  // Every message has the same bytes a token.
  Bytes known_bytes = 0;
  std::int64_t known_tokens = 0;
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const StageProgram& stage = program.stages[s];
    for (std::size_t i = 0; i < stage.instructions.size(); ++i) {
      const Instruction& instruction = stage.instructions[i];
      if (!is_send(instruction.kind) && !is_recv(instruction.kind)) continue;
      auto& log = is_send(instruction.kind) ? sent : received;
      log[static_cast<std::size_t>(instruction.channel)].push_back(
          {instruction.microbatch, hop_of(stage, instruction), instruction.bytes});
      const std::int64_t tokens = program.microbatch(instruction.microbatch).computed_tokens();
      if (known_tokens == 0) known_bytes = instruction.bytes, known_tokens = tokens;
      if (instruction.bytes <= 0 || instruction.bytes * known_tokens != known_bytes * tokens)
        bad(place(program, s, i) + fmt::format(" carries {} bytes for {} tokens", instruction.bytes, tokens));
    }
  }
  for (std::size_t c = 0; c < program.channels.size(); ++c) {
    const auto ends =
        fmt::format("channel {} from stage {} to stage {}", c, program.channels[c].from, program.channels[c].to);
    for (std::size_t i = 0; i < received[c].size(); ++i) {
      const MicrobatchId id = received[c][i].microbatch;
      if (i >= sent[c].size()) {
        bad(fmt::format("{}: the receive of microbatch {} has no send", ends, id));
      } else if (sent[c][i].microbatch != id) {
        bad(fmt::format("{}: microbatch {} is received where {} was sent", ends, id, sent[c][i].microbatch));
      } else if (sent[c][i].hop != received[c][i].hop) {
        bad(fmt::format("{}: microbatch {} is received by another model chunk than it was sent to", ends, id));
      }
    }
    if (received[c].size() > sent[c].size()) continue;
    std::vector<MicrobatchId> left;
    for (std::size_t i = received[c].size(); i < sent[c].size(); ++i) left.push_back(sent[c][i].microbatch);
    if (left != program.after.messages[c])
      bad(fmt::format("{}: {} messages are sent and never received, the boundary has {}", ends, left.size(),
                      program.after.messages[c].size()));
  }
}

/// That a stage's passes wait for their inputs, and its sends for what they send.
class StageMessages {
 public:
  StageMessages(const Program& program, std::size_t index, std::vector<Violation>& violations)
      : program_(program), index_(index), stage_(program.stages[index]), violations_(violations), known_(stage_) {
    for (std::size_t i = 0; i < stage_.instructions.size(); ++i) {
      const Instruction& instruction = stage_.instructions[i];
      if (is_send(instruction.kind) || is_recv(instruction.kind)) {
        if (!places_.emplace(Place{instruction.kind, instruction.microbatch, instruction.subgraph}, i).second)
          bad(i, fmt::format(" is the second of microbatch {}", instruction.microbatch));
      }
      for (const Part& part : stage_.parts_of(instruction)) {
        if (stage_.interleaves() || stage_.ends(instruction.kind, part))
          places_[{instruction.kind, part.microbatch, subgraph_of(part)}] = i;
      }
    }
  }

  void run() {
    for (std::size_t i = 0; i < stage_.instructions.size(); ++i) {
      const Instruction& instruction = stage_.instructions[i];
      if (instruction.kind == Kind::forward || instruction.kind == Kind::backward) check_pass(i, instruction);
      if (is_send(instruction.kind)) {
        const Kind pass = instruction.kind == Kind::send_activation ? Kind::forward : Kind::backward;
        if (!waits_for(i, {pass, instruction.microbatch, instruction.subgraph}))
          bad(i, fmt::format(" does not wait for the {} of microbatch {}", name(pass), instruction.microbatch));
      }
    }
  }

 private:
  /// A message, or the pass that makes or takes it.
  struct Place {
    Kind kind = Kind::forward;
    MicrobatchId microbatch = 0;
    std::int32_t subgraph = 0;  ///< of interleaved stages
    auto operator<=>(const Place&) const = default;
  };
  std::int32_t subgraph_of(const Part& part) const { return stage_.interleaves() ? part.first_subgraph : 0; }

  void bad(std::size_t i, const std::string& what) {
    violations_.push_back({Rule::messages, place(program_, index_, i) + what});
  }

  void check_pass(std::size_t i, const Instruction& instruction) {
    const bool forward = instruction.kind == Kind::forward;
    const Kind recv = forward ? Kind::recv_activation : Kind::recv_gradient;
    const Kind send = forward ? Kind::send_activation : Kind::send_gradient;
    for (const Part& part : stage_.parts_of(instruction)) {
      const std::int32_t subgraph = subgraph_of(part);
      if (stage_.receives(instruction.kind, part) && !waits_for(i, {recv, part.microbatch, subgraph}))
        bad(i, fmt::format(" does not wait for {} of microbatch {}", name(recv), part.microbatch));
      const bool sent = places_.contains({send, part.microbatch, subgraph}) ||
                        find_awaited(program_.after.stages[index_], stage_.first_id + static_cast<InstructionId>(i));
      if (stage_.sends(instruction.kind, part) && !sent)
        bad(i, fmt::format(" has a result of microbatch {} that is never sent on", part.microbatch));
    }
  }

  /// True when the instruction of that kind and microbatch, in this slice or awaited from an earlier one, has ended.
  bool waits_for(std::size_t i, const Place& place) const {
    if (const auto here = places_.find(place); here != places_.end())
      return here->second < i && known_.ended(here->second, i);
    for (const InstructionId id : stage_.waits_of(stage_.instructions[i])) {
      if (id >= stage_.first_id) continue;
      const Awaited* awaited = find_awaited(program_.before.stages[index_], id);
      const std::vector<MicrobatchId>& done = awaited->microbatches;
      if (awaited->kind == place.kind && std::find(done.begin(), done.end(), place.microbatch) != done.end())
        return true;
    }
    return false;
  }

  const Program& program_;
  std::size_t index_;
  const StageProgram& stage_;
  std::vector<Violation>& violations_;
  KnownEnded known_;
  std::map<Place, std::size_t> places_;
};

/// What a member says about a meeting; all members must say the same. A ReduceNorm's bytes are each member's own.
using Meeting = std::tuple<Kind, TaskIndex, std::int64_t, std::int32_t, std::int32_t, Bytes>;

Meeting meeting_of(const Instruction& instruction) {
  return {instruction.kind,         instruction.task,
          instruction.global_batch, instruction.layers.first,
          instruction.layers.last,  instruction.kind == Kind::reduce_norm ? 0 : instruction.bytes};
}

std::string describe(const Meeting& meeting) {
  return fmt::format("{} of task {} batch {}", name(std::get<0>(meeting)), std::get<1>(meeting), std::get<2>(meeting));
}

/// The stages that must meet: for a SyncAdapter all that hold its layers, for a ReduceNorm all of the replica.
std::vector<StageIndex> members_of(const Program& program, const StageProgram& stage, const Instruction& instruction) {
  std::vector<StageIndex> members;
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const StageProgram& other = program.stages[s];
    const bool holds = std::any_of(other.layers.begin(), other.layers.end(), [&](const LayerRange& range) {
      return range.first < instruction.layers.last && instruction.layers.first < range.last;
    });
    const bool meets = instruction.kind == Kind::sync_adapter ? holds : other.replica == stage.replica;
    if (meets) members.push_back(static_cast<StageIndex>(s));
  }
  return members;
}

void verify_membership(const Program& program, std::vector<Violation>& violations) {
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const StageProgram& stage = program.stages[s];
    for (std::size_t i = 0; i < stage.instructions.size(); ++i) {
      const Instruction& instruction = stage.instructions[i];
      if (!is_grouped(instruction.kind)) continue;
      std::vector<StageIndex> members = program.groups[static_cast<std::size_t>(instruction.group)].stages;
      std::sort(members.begin(), members.end());
      const auto bad = [&](const std::string& what) {
        violations.push_back({Rule::groups, place(program, s, i) + what});
      };
      if (!std::binary_search(members.begin(), members.end(), static_cast<StageIndex>(s)))
        bad(fmt::format(" meets in group {}, which it is not in", instruction.group));
      if (members != members_of(program, stage, instruction))
        bad(fmt::format(" meets in group {}, which is not all that must meet", instruction.group));
    }
  }
}

}  // namespace

void verify_messages(const Program& program, std::vector<Violation>& violations) {
  verify_channels(program, violations);
  if (!violations.empty()) return;
  for (std::size_t s = 0; s < program.stages.size(); ++s) StageMessages(program, s, violations).run();
}

void verify_groups(const Program& program, std::vector<Violation>& violations) {
  verify_membership(program, violations);
  for (std::size_t g = 0; g < program.groups.size(); ++g) {
    std::vector<Meeting> first;
    for (std::size_t m = 0; m < program.groups[g].stages.size(); ++m) {
      const StageIndex member = program.groups[g].stages[m];
      std::vector<Meeting> meetings;
      for (const Instruction& instruction : program.stages[static_cast<std::size_t>(member)].instructions) {
        if (is_grouped(instruction.kind) && static_cast<std::size_t>(instruction.group) == g)
          meetings.push_back(meeting_of(instruction));
      }
      if (m == 0) first = meetings;
      for (std::size_t i = 0; i < std::min(first.size(), meetings.size()); ++i) {
        if (first[i] == meetings[i]) continue;
        violations.push_back(
            {Rule::groups,
             fmt::format("group {}: collectives cross, stage {} issues {} where stage {} issues {}", g, member,
                         describe(meetings[i]), program.groups[g].stages[0], describe(first[i]))});
        break;
      }
      if (first.size() != meetings.size()) {
        violations.push_back(
            {Rule::groups, fmt::format("group {}: stage {} comes to {} meetings, stage {} to {}", g, member,
                                       meetings.size(), program.groups[g].stages[0], first.size())});
      }
    }
  }
}

}  // namespace braid::planner::detail

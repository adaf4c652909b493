// The rules about how stages meet: ids, messages, groups.

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"
#include "planner/verify.h"

namespace braid::planner::detail {
namespace {

std::string place(const Program& program, std::size_t stage, std::size_t position) {
  const StageProgram& list = program.stages[stage];
  return fmt::format("replica {} stage {}: {} {}", list.replica, list.stage, name(list.instructions[position].kind),
                     list.first_id + static_cast<InstructionId>(position));
}

bool in_range(std::int64_t index, std::size_t size) {
  return index >= 0 && static_cast<std::size_t>(index) < size;
}

bool has_microbatch(const Program& program, MicrobatchId id) {
  const auto found =
      std::lower_bound(program.microbatches.begin(), program.microbatches.end(), id,
                       [](const Microbatch& microbatch, MicrobatchId key) { return microbatch.id < key; });
  return found != program.microbatches.end() && found->id == id;
}

/// The first instruction, of the slice, that waits for `id`; the count of instructions when none does.
std::size_t first_waiter(const StageProgram& stage, InstructionId id, bool (*wanted)(Kind)) {
  for (std::size_t i = 0; i < stage.instructions.size(); ++i) {
    if (!wanted(stage.instructions[i].kind)) continue;
    for (const InstructionId waited : stage.waits_of(stage.instructions[i])) {
      if (waited == id) return i;
    }
  }
  return stage.instructions.size();
}

/// What a member says about a meeting; all members must say the same.
using Meeting = std::tuple<Kind, Collective, TaskIndex, std::int64_t, std::int32_t, std::int32_t>;

Meeting meeting_of(const Instruction& instruction) {
  return {instruction.kind,         instruction.collective,   instruction.task,
          instruction.global_batch, instruction.layers.first, instruction.layers.last};
}

std::string describe(const Meeting& meeting) {
  return fmt::format("{} of task {} batch {}", name(std::get<0>(meeting)), std::get<2>(meeting), std::get<3>(meeting));
}

}  // namespace

void verify_ids(const Program& program, std::vector<Violation>& violations) {
  const auto bad = [&](std::size_t stage, std::size_t i, const std::string& what) {
    violations.push_back({Rule::ids, place(program, stage, i) + " " + what});
  };
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const StageProgram& stage = program.stages[s];
    for (std::size_t i = 0; i < stage.instructions.size(); ++i) {
      const Instruction& instruction = stage.instructions[i];
      const InstructionId id = stage.first_id + static_cast<InstructionId>(i);
      const std::vector<InstructionId>& awaited = program.before.stages[s].awaited;
      for (const InstructionId waited : stage.waits_of(instruction)) {
        if (waited >= id) bad(s, i, fmt::format("waits for {}, which comes later", waited));
        if (waited < stage.first_id && !std::binary_search(awaited.begin(), awaited.end(), waited)) {
          bad(s, i, fmt::format("waits for {}, which the boundary does not keep", waited));
        }
      }
      for (const Part& part : stage.parts_of(instruction)) {
        if (!has_microbatch(program, part.microbatch))
          bad(s, i, fmt::format("names microbatch {}, which does not exist", part.microbatch));
      }
      const bool computes = instruction.kind == Kind::forward || instruction.kind == Kind::backward;
      if (computes && instruction.parts.count == 0) bad(s, i, "computes nothing");
      if (is_send(instruction.kind) || is_recv(instruction.kind)) {
        if (!in_range(instruction.channel, program.channels.size())) {
          bad(s, i, "names no channel");
        } else if (const Channel& channel = program.channels[static_cast<std::size_t>(instruction.channel)];
                   static_cast<std::size_t>(is_send(instruction.kind) ? channel.from : channel.to) != s) {
          bad(s, i, "uses a channel of other stages");
        }
        if (!has_microbatch(program, instruction.microbatch)) bad(s, i, "carries no microbatch");
      }
      if (is_grouped(instruction.kind) && !in_range(instruction.group, program.groups.size()))
        bad(s, i, "names no group");
      const bool of_task = instruction.kind == Kind::step || instruction.kind == Kind::sync_adapter ||
                           instruction.kind == Kind::reduce_norm;
      if (of_task && !in_range(instruction.task, static_cast<std::size_t>(program.task_count)))
        bad(s, i, "names no task");
    }
  }
}

void verify_messages(const Program& program, std::vector<Violation>& violations) {
  std::vector<std::vector<MicrobatchId>> sent = program.before.messages;
  std::vector<std::vector<MicrobatchId>> received(program.channels.size());
  for (const StageProgram& stage : program.stages) {
    for (const Instruction& instruction : stage.instructions) {
      if (is_send(instruction.kind))
        sent[static_cast<std::size_t>(instruction.channel)].push_back(instruction.microbatch);
      if (is_recv(instruction.kind))
        received[static_cast<std::size_t>(instruction.channel)].push_back(instruction.microbatch);
    }
  }
  for (std::size_t c = 0; c < program.channels.size(); ++c) {
    const auto ends =
        fmt::format("channel {} from stage {} to stage {}", c, program.channels[c].from, program.channels[c].to);
    for (std::size_t i = 0; i < received[c].size(); ++i) {
      if (i >= sent[c].size()) {
        violations.push_back(
            {Rule::messages, fmt::format("{}: the receive of microbatch {} has no send", ends, received[c][i])});
      } else if (sent[c][i] != received[c][i]) {
        violations.push_back({Rule::messages, fmt::format("{}: microbatch {} is received where {} was sent", ends,
                                                          received[c][i], sent[c][i])});
      }
    }
    const std::vector<MicrobatchId> left(
        sent[c].begin() + static_cast<std::ptrdiff_t>(std::min(received[c].size(), sent[c].size())), sent[c].end());
    if (left != program.after.messages[c] && received[c].size() <= sent[c].size()) {
      violations.push_back(
          {Rule::messages, fmt::format("{}: {} messages are sent and never received, the boundary has {}", ends,
                                       left.size(), program.after.messages[c].size())});
    }
  }
  if (!violations.empty()) return;
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const StageProgram& stage = program.stages[s];
    for (std::size_t i = 0; i < stage.instructions.size(); ++i) {
      const Instruction& instruction = stage.instructions[i];
      const InstructionId id = stage.first_id + static_cast<InstructionId>(i);
      const bool forward = instruction.kind == Kind::forward;
      if (!forward && instruction.kind != Kind::backward) continue;
      const bool needs_input = forward ? !stage.has_embedding : !stage.has_head;
      const bool gives_output = forward ? !stage.has_head : !stage.has_embedding;
      const Kind recv = forward ? Kind::recv_activation : Kind::recv_gradient;
      for (const Part& part : stage.parts_of(instruction)) {
        bool waits = !needs_input || part.first_subgraph > 0;
        for (const InstructionId waited : stage.waits_of(instruction)) {
          if (waited < stage.first_id) {
            waits = true;  // of the slice before; its place there was checked with it
            continue;
          }
          const Instruction& source = stage.instructions[static_cast<std::size_t>(waited - stage.first_id)];
          waits |= source.kind == recv && source.microbatch == part.microbatch;
        }
        if (!waits)
          violations.push_back(
              {Rule::messages, place(program, s, i) +
                                   fmt::format(" does not wait for {} of microbatch {}", name(recv), part.microbatch)});
      }
      const bool awaited_later =
          std::binary_search(program.after.stages[s].awaited.begin(), program.after.stages[s].awaited.end(), id);
      if (gives_output && !awaited_later && first_waiter(stage, id, &is_send) == stage.instructions.size()) {
        violations.push_back({Rule::messages, place(program, s, i) + " has a result that is never sent on"});
      }
    }
  }
}

void verify_groups(const Program& program, std::vector<Violation>& violations) {
  for (std::size_t g = 0; g < program.groups.size(); ++g) {
    std::vector<Meeting> first;
    Stream stream = Stream::compute;
    for (std::size_t m = 0; m < program.groups[g].stages.size(); ++m) {
      const StageIndex member = program.groups[g].stages[m];
      std::vector<Meeting> meetings;
      for (const Instruction& instruction : program.stages[static_cast<std::size_t>(member)].instructions) {
        if (!is_grouped(instruction.kind) || static_cast<std::size_t>(instruction.group) != g) continue;
        if (stream != Stream::compute && stream != instruction.stream) {
          violations.push_back({Rule::groups, fmt::format("group {} meets on two streams", g)});
        }
        stream = instruction.stream;
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
  // A stage that is no member must not issue the group's collectives.
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    for (std::size_t i = 0; i < program.stages[s].instructions.size(); ++i) {
      const Instruction& instruction = program.stages[s].instructions[i];
      if (!is_grouped(instruction.kind)) continue;
      const std::vector<StageIndex>& members = program.groups[static_cast<std::size_t>(instruction.group)].stages;
      if (std::find(members.begin(), members.end(), static_cast<StageIndex>(s)) == members.end()) {
        violations.push_back({Rule::groups, place(program, s, i) + fmt::format(" meets in group {}, which it is not in",
                                                                               instruction.group)});
      }
    }
  }
}

}  // namespace braid::planner::detail

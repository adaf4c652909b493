#include "planner/program/cut.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"

namespace braid::planner {
namespace {

/// Every message of a channel in order: those under way at the start have no send in the slice.
struct ChannelLog {
  std::size_t under_way = 0;
  std::vector<std::size_t> sends;  // positions in the sender's list
  std::vector<std::size_t> recvs;  // positions in the receiver's list
};

std::vector<ChannelLog> channel_logs(const Program& program) {
  std::vector<ChannelLog> logs(program.channels.size());
  for (std::size_t channel = 0; channel < logs.size(); ++channel)
    logs[channel].under_way = program.before.messages[channel].size();
  for (const StageProgram& stage : program.stages) {
    for (std::size_t i = 0; i < stage.instructions.size(); ++i) {
      const Instruction& instruction = stage.instructions[i];
      if (is_send(instruction.kind)) logs[static_cast<std::size_t>(instruction.channel)].sends.push_back(i);
      if (is_recv(instruction.kind)) logs[static_cast<std::size_t>(instruction.channel)].recvs.push_back(i);
    }
  }
  return logs;
}

/// Per group and member, the positions of its meetings.
std::vector<std::vector<std::vector<std::size_t>>> group_logs(const Program& program) {
  std::vector<std::vector<std::vector<std::size_t>>> logs(program.groups.size());
  for (std::size_t group = 0; group < logs.size(); ++group) {
    for (const StageIndex member : program.groups[group].stages) {
      std::vector<std::size_t>& positions = logs[group].emplace_back();
      const StageProgram& stage = program.stages[static_cast<std::size_t>(member)];
      for (std::size_t i = 0; i < stage.instructions.size(); ++i) {
        const Instruction& instruction = stage.instructions[i];
        if (is_grouped(instruction.kind) && static_cast<std::size_t>(instruction.group) == group)
          positions.push_back(i);
      }
    }
  }
  return logs;
}

std::size_t count_before(const std::vector<std::size_t>& positions, std::size_t limit) {
  return static_cast<std::size_t>(std::lower_bound(positions.begin(), positions.end(), limit) - positions.begin());
}

/// The first place from `limit` on where no microbatch is between subgraphs.
std::size_t end_of_pass(const StageProgram& stage, std::size_t limit) {
  std::set<std::pair<Kind, MicrobatchId>> open;
  for (std::size_t i = 0; i < stage.instructions.size(); ++i) {
    if (i >= limit && open.empty()) return i;
    const Kind kind = stage.instructions[i].kind;
    for (const Part& part : stage.parts_of(stage.instructions[i])) {
      if (!stage.ends(kind, part)) open.insert({kind, part.microbatch});
      if (stage.ends(kind, part)) open.erase({kind, part.microbatch});
    }
  }
  return stage.instructions.size();
}

/// Moves the cut later until nothing before it waits for anything after it, and no pass is split. False where something
/// before it waits for what is not in the Program.
bool settle(const Program& program, std::vector<std::size_t>& after) {
  const std::vector<ChannelLog> channels = channel_logs(program);
  const auto groups = group_logs(program);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < after.size(); ++s) {
      const std::size_t whole = end_of_pass(program.stages[s], after[s]);
      if (whole > after[s]) after[s] = whole, moved = true;
    }
    bool all_there = true;
    const auto include = [&](StageIndex stage, const std::vector<std::size_t>& positions, std::size_t count) {
      if (count > positions.size()) {
        all_there = false;
        return;
      }
      std::size_t& limit = after[static_cast<std::size_t>(stage)];
      if (limit <= positions[count - 1]) limit = positions[count - 1] + 1, moved = true;
    };
    for (std::size_t c = 0; c < channels.size(); ++c) {
      const ChannelLog& log = channels[c];
      const std::size_t received = count_before(log.recvs, after[static_cast<std::size_t>(program.channels[c].to)]);
      if (received > log.under_way) include(program.channels[c].from, log.sends, received - log.under_way);
    }
    for (std::size_t g = 0; g < groups.size(); ++g) {
      std::size_t met = 0;
      for (std::size_t m = 0; m < groups[g].size(); ++m) {
        met = std::max(met, count_before(groups[g][m], after[static_cast<std::size_t>(program.groups[g].stages[m])]));
      }
      for (std::size_t m = 0; met > 0 && m < groups[g].size(); ++m)
        include(program.groups[g].stages[m], groups[g][m], met);
    }
    if (!all_there) return false;
  }
  return true;
}

/// Entries [first, last) of a stage's list.
StageProgram copy_range(const StageProgram& whole, std::size_t first, std::size_t last) {
  StageProgram part;
  part.replica = whole.replica;
  part.stage = whole.stage;
  part.layers = whole.layers;
  part.has_embedding = whole.has_embedding;
  part.has_head = whole.has_head;
  part.ranks = whole.ranks;
  part.subgraphs = whole.subgraphs;
  part.recompute = whole.recompute;
  part.sequence_parallel = whole.sequence_parallel;
  part.first_id = whole.first_id + static_cast<InstructionId>(first);
  part.instructions.reserve(last - first);
  for (std::size_t i = first; i < last; ++i) {
    part.append(whole.instructions[i], whole.waits_of(whole.instructions[i]), whole.parts_of(whole.instructions[i]));
  }
  return part;
}

/// All but the stages' lists and the microbatches.
Program copy_instance(const Program& whole) {
  Program copy;
  copy.channels = whole.channels;
  copy.groups = whole.groups;
  copy.task_count = whole.task_count;
  copy.blocking_messages = whole.blocking_messages;
  return copy;
}

/// The keys that live microbatches keep of samples which the stream cuts into chunks.
std::vector<StoredKeys> stored_keys(const Program& program, const std::set<MicrobatchId>& live) {
  using SampleKey = std::tuple<TaskIndex, std::int64_t, std::int32_t>;
  std::set<SampleKey> chunked;
  for (const Microbatch& microbatch : program.microbatches) {
    for (const Segment& segment : microbatch.segments) {
      if (segment.begin > 0) chunked.insert({segment.task, segment.global_batch, segment.index});
    }
  }
  std::map<SampleKey, std::int32_t> tokens;
  for (const MicrobatchId id : live) {
    for (const Segment& segment : program.microbatch(id).segments) {
      const SampleKey key{segment.task, segment.global_batch, segment.index};
      if (chunked.contains(key)) tokens[key] = std::max(tokens[key], segment.end);
    }
  }
  std::vector<StoredKeys> keys;
  for (const auto& [key, count] : tokens) keys.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), count});
  return keys;
}

/// What is under way on a stage after the instructions before `limit`, told from the boundary before and the list
/// alone.
StageBoundary stage_boundary(const Program& program, std::size_t index, std::size_t limit) {
  const StageProgram& stage = program.stages[index];
  const StageBoundary& before = program.before.stages[index];
  StageBoundary boundary;
  boundary.next_batch = before.next_batch;
  std::set<MicrobatchId> live(before.live.begin(), before.live.end());
  std::map<std::pair<TaskIndex, std::int64_t>, std::set<SamplePiece>> gradients;
  for (const PartialGradient& partial : before.gradients) {
    gradients[{partial.task, partial.global_batch}].insert(partial.samples.begin(), partial.samples.end());
  }
  for (std::size_t i = 0; i < limit; ++i) {
    const Instruction& instruction = stage.instructions[i];
    if (instruction.kind == Kind::step)
      boundary.next_batch[static_cast<std::size_t>(instruction.task)] = instruction.global_batch + 1;
  }
  std::erase_if(gradients, [&](const auto& batch) {
    return batch.first.second < boundary.next_batch[static_cast<std::size_t>(batch.first.first)];
  });
  for (std::size_t i = 0; i < limit; ++i) {
    const Instruction& instruction = stage.instructions[i];
    for (const Part& part : stage.parts_of(instruction)) {
      if (instruction.kind == Kind::forward) {
        live.insert(part.microbatch);
      } else if (stage.ends(Kind::backward, part)) {
        live.erase(part.microbatch);
        for (const Segment& segment : program.microbatch(part.microbatch).segments) {
          if (segment.global_batch >= boundary.next_batch[static_cast<std::size_t>(segment.task)])
            gradients[{segment.task, segment.global_batch}].insert({segment.index, segment.begin, segment.end});
        }
      }
    }
  }
  boundary.live.assign(live.begin(), live.end());
  for (const auto& [key, indices] : gradients) {
    boundary.gradients.push_back({key.first, key.second, {indices.begin(), indices.end()}});
  }
  boundary.keys = stored_keys(program, live);
  const InstructionId first_after = stage.first_id + static_cast<InstructionId>(limit);
  std::set<InstructionId> awaited;
  for (const Awaited& entry : program.after.stages[index].awaited) {
    if (entry.id < first_after) awaited.insert(entry.id);
  }
  for (std::size_t i = limit; i < stage.instructions.size(); ++i) {
    for (const InstructionId id : stage.waits_of(stage.instructions[i])) {
      if (id < first_after) awaited.insert(id);
    }
  }
  for (const InstructionId id : awaited) {
    if (id >= stage.first_id) {
      boundary.awaited.push_back(describe_awaited(stage, static_cast<std::size_t>(id - stage.first_id)));
    } else {
      const Awaited* known = find_awaited(before, id);
      BRAID_CHECK(known != nullptr, "instruction {} is awaited and the boundary before does not know it", id);
      boundary.awaited.push_back(*known);
    }
  }
  return boundary;
}

Boundary boundary_at(const Program& program, const std::vector<std::size_t>& after) {
  Boundary boundary = empty_boundary(program);
  for (std::size_t stage = 0; stage < program.stages.size(); ++stage) {
    boundary.stages[stage] = stage_boundary(program, stage, after[stage]);
  }
  const std::vector<ChannelLog> channels = channel_logs(program);
  for (std::size_t c = 0; c < channels.size(); ++c) {
    std::vector<MicrobatchId> messages = program.before.messages[c];
    const auto sender = static_cast<std::size_t>(program.channels[c].from);
    const auto receiver = static_cast<std::size_t>(program.channels[c].to);
    for (std::size_t i = 0; i < count_before(channels[c].sends, after[sender]); ++i) {
      messages.push_back(program.stages[sender].instructions[channels[c].sends[i]].microbatch);
    }
    const auto received = static_cast<std::ptrdiff_t>(count_before(channels[c].recvs, after[receiver]));
    boundary.messages[c].assign(messages.begin() + received, messages.end());
  }
  return boundary;
}

/// The microbatches that the slice's lists or boundaries name.
std::vector<Microbatch> named_microbatches(const Program& whole, const Program& slice) {
  std::vector<MicrobatchId> named;
  for (const StageProgram& stage : slice.stages) {
    for (const Part& part : stage.parts) named.push_back(part.microbatch);
    for (const Instruction& instruction : stage.instructions) {
      if (instruction.microbatch != kNone) named.push_back(instruction.microbatch);
    }
  }
  for (const Boundary* boundary : {&slice.before, &slice.after}) {
    for (const StageBoundary& stage : boundary->stages) {
      named.insert(named.end(), stage.live.begin(), stage.live.end());
      for (const Awaited& awaited : stage.awaited)
        named.insert(named.end(), awaited.microbatches.begin(), awaited.microbatches.end());
    }
    for (const std::vector<MicrobatchId>& messages : boundary->messages)
      named.insert(named.end(), messages.begin(), messages.end());
  }
  std::sort(named.begin(), named.end());
  named.erase(std::unique(named.begin(), named.end()), named.end());
  std::vector<Microbatch> microbatches;
  for (const MicrobatchId id : named) microbatches.push_back(whole.microbatch(id));
  return microbatches;
}

}  // namespace

std::pair<Program, Program> cut(const Program& whole, std::vector<std::size_t> after) {
  auto slices = cut_if_whole(whole, std::move(after));
  BRAID_CHECK(slices.has_value(), "what lies before the cut waits for what is not there");
  return std::move(*slices);
}

std::optional<std::pair<Program, Program>> cut_if_whole(const Program& whole, std::vector<std::size_t> after) {
  BRAID_CHECK(after.size() == whole.stages.size(), "{} places for {} stages", after.size(), whole.stages.size());
  if (!settle(whole, after)) return std::nullopt;
  Program first = copy_instance(whole), second = copy_instance(whole);
  for (std::size_t stage = 0; stage < whole.stages.size(); ++stage) {
    const StageProgram& source = whole.stages[stage];
    first.stages.push_back(copy_range(source, 0, after[stage]));
    second.stages.push_back(copy_range(source, after[stage], source.instructions.size()));
  }
  first.before = whole.before;
  first.after = second.before = boundary_at(whole, after);
  second.after = whole.after;
  first.microbatches = named_microbatches(whole, first);
  second.microbatches = named_microbatches(whole, second);
  return std::pair(std::move(first), std::move(second));
}

std::vector<std::size_t> end_of_window(const Program& program, std::span<const std::int64_t> next_batch) {
  std::vector<std::size_t> after(program.stages.size(), 0);
  for (std::size_t stage = 0; stage < program.stages.size(); ++stage) {
    const std::vector<Instruction>& instructions = program.stages[stage].instructions;
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      const Instruction& step = instructions[i];
      if (step.kind == Kind::step && step.global_batch < next_batch[static_cast<std::size_t>(step.task)])
        after[stage] = i + 1;
    }
  }
  return after;
}

}  // namespace braid::planner

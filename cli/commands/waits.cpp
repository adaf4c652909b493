#include "cli/commands/waits.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace braid::cli {
namespace {

/// Null for an event of another slice.
const planner::Instruction* instruction_of(const planner::Program& program, const planner::Event& event) {
  const planner::StageProgram& stage = program.stages[static_cast<std::size_t>(event.stage)];
  const planner::InstructionId place = event.instruction - stage.first_id;
  if (place < 0 || place >= std::ssize(stage.instructions)) return nullptr;
  return &stage.instructions[static_cast<std::size_t>(place)];
}

}  // namespace

void Waits::add(const planner::Event& event, Nanoseconds waited) {
  waited_[{event.stage, event.instruction}] = std::clamp<Nanoseconds>(waited, 0, event.end - event.start);
}

Nanoseconds Waits::of(const planner::Event& event) const {
  const auto found = waited_.find({event.stage, event.instruction});
  return found == waited_.end() ? 0 : found->second;
}

FastestMessages fastest_messages(std::span<const exec::RecordedWindow> windows) {
  FastestMessages fastest;
  for (const exec::RecordedWindow& window : windows) {
    for (const planner::Event& event : window.timeline.events) {
      const planner::Instruction* instruction = instruction_of(window.program, event);
      if (!instruction || !planner::is_send(event.kind)) continue;
      const auto [known, is_new] =
          fastest.try_emplace({instruction->channel, instruction->bytes}, event.end - event.start);
      if (!is_new) known->second = std::min(known->second, event.end - event.start);
    }
  }
  return fastest;
}

Waits waits_in(const exec::RecordedWindow& window, const FastestMessages& fastest) {
  Waits waits;
  // All members of a group meet there in one order.
  using Meeting = std::pair<planner::GroupIndex, std::size_t>;
  std::map<Meeting, std::vector<const planner::Event*>> meetings;
  std::map<std::tuple<planner::StageIndex, std::int32_t, planner::GroupIndex>, std::size_t> met;
  for (const planner::Event& event : window.timeline.events) {
    const planner::Instruction* instruction = instruction_of(window.program, event);
    if (!instruction) continue;
    if (planner::is_send(event.kind)) {
      waits.add(event, event.end - event.start - fastest.at({instruction->channel, instruction->bytes}));
    } else if (instruction->group != planner::kNone) {
      meetings[{instruction->group, met[{event.stage, event.rank, instruction->group}]++}].push_back(&event);
    }
  }
  for (const auto& [meeting, members] : meetings) {
    Nanoseconds last = members.front()->start;
    for (const planner::Event* member : members) last = std::max(last, member->start);
    for (const planner::Event* member : members) waits.add(*member, last - member->start);
  }
  return waits;
}

}  // namespace braid::cli

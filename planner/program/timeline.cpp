#include "planner/program/timeline.h"

#include <algorithm>
#include <iterator>

namespace braid::planner {

Nanoseconds Timeline::begin() const {
  Nanoseconds first = events.empty() ? 0 : events.front().start;
  for (const Event& event : events) first = std::min(first, event.start);
  return first;
}

Nanoseconds Timeline::end() const {
  Nanoseconds last = events.empty() ? 0 : events.front().end;
  for (const Event& event : events) last = std::max(last, event.end);
  return last;
}

void Timeline::shift(Nanoseconds by) {
  for (MemorySample& sample : memory) sample.time += by;
  for (Event& event : events) {
    event.start += by;
    event.end += by;
  }
}

Nanoseconds end_of_steps(std::span<const Event> events) {
  Nanoseconds last = 0;
  for (const Event& event : events) {
    if (event.kind == Kind::step) last = std::max(last, event.end);
  }
  return last;
}

void append_window(const Program& program, const Timeline& ran, Program& joined, Timeline& timeline) {
  if (joined.stages.empty()) {
    joined = program;
    for (StageProgram& stage : joined.stages) {
      stage.first_id = 0;
      stage.instructions.clear();
      stage.waits.clear();
      stage.parts.clear();
    }
    joined.microbatches.clear();
  }
  for (Event event : ran.events) {
    const auto stage = static_cast<std::size_t>(event.stage);
    event.instruction +=
        static_cast<InstructionId>(joined.stages[stage].instructions.size()) - program.stages[stage].first_id;
    timeline.events.push_back(event);
  }
  timeline.memory.insert(timeline.memory.end(), ran.memory.begin(), ran.memory.end());
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const StageProgram& source = program.stages[s];
    for (const Instruction& instruction : source.instructions)
      joined.stages[s].append(instruction, {}, source.parts_of(instruction));
  }
  // Some go on from one slice to the next.
  const auto by_id = [](const Microbatch& a, const Microbatch& b) { return a.id < b.id; };
  std::vector<Microbatch> microbatches;
  std::set_union(joined.microbatches.begin(), joined.microbatches.end(), program.microbatches.begin(),
                 program.microbatches.end(), std::back_inserter(microbatches), by_id);
  joined.microbatches = std::move(microbatches);
}

}  // namespace braid::planner

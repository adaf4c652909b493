#include "planner/timeline.h"

#include <algorithm>

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
  const Nanoseconds offset = timeline.end();
  for (Event event : ran.events) {
    const auto stage = static_cast<std::size_t>(event.stage);
    event.instruction +=
        static_cast<InstructionId>(joined.stages[stage].instructions.size()) - program.stages[stage].first_id;
    event.start += offset;
    event.end += offset;
    timeline.events.push_back(event);
  }
  for (MemorySample sample : ran.memory) {
    sample.time += offset;
    timeline.memory.push_back(sample);
  }
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const StageProgram& source = program.stages[s];
    for (const Instruction& instruction : source.instructions)
      joined.stages[s].append(instruction, {}, source.parts_of(instruction));
  }
  joined.microbatches.insert(joined.microbatches.end(), program.microbatches.begin(), program.microbatches.end());
}

}  // namespace braid::planner

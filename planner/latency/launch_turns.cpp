#include "planner/latency/launch_turns.h"

#include <utility>

#include "planner/latency/clock_schedule.h"
#include "planner/program/load.h"

namespace braid::planner {
namespace {

/// Collectives that a subgraph ends in; the head's are two in a row.
std::int64_t collectives(const Subgraph& subgraph, const ClockSchedule& clock) {
  std::int64_t count = 0;
  for (const SubgraphPart& part : subgraph.parts) {
    const OperatorGraph& graph = clock.graphs[static_cast<std::size_t>(part.htask)];
    for (const OperatorVertex vertex : part.vertices) count += graph[vertex].communication ? 1 : 0;
  }
  return count;
}

/// A part's last subgraphs may communicate no more: they are its end, which comes when the last of them is launched.
Turns turns_of(const ClockSchedule& clock, std::size_t parts) {
  std::vector<std::size_t> last(parts, 0);  // per part: the place of its last launch
  const std::vector<LaunchEntry>& entries = clock.launches.entries;
  for (std::size_t place = 0; place < entries.size(); ++place)
    last[static_cast<std::size_t>(entries[place].htask)] = place;
  Turns turns;
  for (std::size_t place = 0; place < entries.size(); ++place) {
    const LaunchEntry& entry = entries[place];
    const std::int64_t meetings = collectives(clock.subgraphs[planner::place(entry.subgraph)], clock);
    turns.insert(turns.end(), static_cast<std::size_t>(meetings), entry.htask);
    if (last[static_cast<std::size_t>(entry.htask)] == place) turns.push_back(entry.htask);
  }
  return turns;
}

}  // namespace

LaunchTurns::LaunchTurns(const costmodel::Profile& profile, const costmodel::BackboneShape& backbone, PassStyle style)
    : cost_(profile), pricing_(device_pricing(cost_)), backbone_(backbone), style_(std::move(style)) {}

StageTurns LaunchTurns::of(const Program& program, StageIndex stage) const {
  StageTurns turns;
  const StageProgram& list = program.stages[static_cast<std::size_t>(stage)];
  if (list.ranks.size() < 2) return turns;
  const LaunchPricing pricing = on_ranks(pricing_, cost_, list.ranks);
  for (std::size_t place = 0; place < list.instructions.size(); ++place) {
    const Instruction& instruction = list.instructions[place];
    const std::span<const Part> parts = list.parts_of(instruction);
    if (parts.size() < 2) continue;
    std::vector<costmodel::MicrobatchLoad> loads;
    for (const Part& part : parts)
      loads.push_back(load_of(program.microbatch(part.microbatch), style_.adapters, style_.kernels));
    const auto pass = instruction.kind == Kind::forward ? costmodel::Pass::forward : costmodel::Pass::backward;
    const ClockSchedule clock = clock_schedule(backbone_, shape_of(list, parts.front()), loads, pass, cost_.storage(),
                                               style_.launch_rule, pricing, cost_.overlap_slowdown());
    turns[list.first_id + static_cast<InstructionId>(place)] = turns_of(clock, parts.size());
  }
  return turns;
}

}  // namespace braid::planner

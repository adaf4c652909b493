#include "cli/support/replayed.h"

#include <algorithm>
#include <ostream>
#include <utility>

#include "base/error.h"
#include "planner/latency/durations.h"
#include "planner/window/predict.h"
#include "planner/window/program_stream.h"
#include "planner/window/unit_stream.h"
#include "sim/replay.h"

namespace braid::cli {
namespace {

/// The memory that each instruction's start and end leave on its rank, as the walk over the Program says.
void add_memory(const planner::Program& program, const planner::MemoryContext& context, planner::Timeline& timeline) {
  const std::vector<planner::StageMemory> memories = planner::walk_memory(program, context);
  for (const planner::Event& event : timeline.events) {
    if (event.stream != planner::Stream::compute) continue;
    const auto stage = static_cast<std::size_t>(event.stage);
    const auto place = static_cast<std::size_t>(event.instruction - program.stages[stage].first_id);
    timeline.memory.push_back({event.rank, event.start, memories[stage].after[place]});
  }
}

/// A stream is settled, or nearly, after so many windows.
constexpr std::int64_t kSettling = 4;

}  // namespace

void write_replay(const planner::Plan& plan, const planner::WindowInput& input, std::int64_t first, std::int64_t last,
                  std::span<const std::string> task_names, std::ostream& out) {
  const std::int64_t windows = planner::window_count(plan.fixed, input);
  last = std::min(last, windows);
  if (first < 0 || first >= windows)
    throw error("window {} is not there; the plan has windows 0..{}", first, windows - 1);
  const costmodel::CostModel cost(plan.profile);
  planner::ClockLatency latency(cost, plan.workload.backbone);
  const planner::PassStyle style = planner::pass_style(plan.fixed, plan.workload);
  const planner::MemoryContext memory = planner::memory_context(plan.fixed, plan.workload);
  const std::int64_t from = planner::streams(plan.fixed) ? std::max<std::int64_t>(0, first - kSettling) : first;
  planner::ProgramStream stream(plan.fixed, input, from, windows);
  planner::Clocks clocks;
  planner::Program joined;
  planner::Timeline shown;
  while (std::optional<planner::Slice> slice = stream.next()) {
    if (slice->window >= last) break;
    const auto predicted = planner::predict_durations(slice->program, style, latency);
    if (slice->begins) clocks = {};
    planner::Timeline timeline = sim::replay(slice->program, predicted.durations, &clocks);
    if (slice->window < first) continue;
    add_memory(slice->program, memory, timeline);
    if (slice->begins) timeline.shift(shown.end() - timeline.begin());
    planner::append_window(slice->program, timeline, joined, shown);
  }
  shown.shift(-shown.begin());
  planner::write_trace(joined, shown, task_names, out);
}

}  // namespace braid::cli

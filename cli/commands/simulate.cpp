#include <algorithm>
#include <optional>
#include <ostream>
#include <utility>

#include <boost/program_options/value_semantic.hpp>
#include <fmt/core.h>

#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/support/results.h"
#include "cli/support/session.h"
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

/// A window's slice and its replay, in mid-stream where the pipeline does not drain; the window begins at 0.
std::pair<planner::Program, planner::Timeline> replay_window(const planner::Plan& plan,
                                                             const planner::WindowInput& input, std::int64_t window,
                                                             planner::ClockLatency& latency) {
  const std::int64_t first = planner::streams(plan.fixed) ? std::max<std::int64_t>(0, window - kSettling) : window;
  planner::ProgramStream stream(plan.fixed, input, first, planner::window_count(plan.fixed, input));
  planner::Clocks clocks;
  while (std::optional<planner::Slice> slice = stream.next()) {
    const planner::PassStyle style = planner::pass_style(plan.fixed, plan.workload);
    const auto predicted = planner::predict_durations(slice->program, style, latency);
    if (slice->begins) clocks = {};
    planner::Timeline timeline = sim::replay(slice->program, predicted.durations, &clocks);
    if (slice->window != window) continue;
    timeline.shift(-timeline.begin());
    return {std::move(slice->program), std::move(timeline)};
  }
  throw InternalError(fmt::format("window {} has no steps", window));
}

}  // namespace

int run_simulate(const std::vector<std::string>& words) {
  CommonFlags flags;
  std::int64_t window = 0;
  CommandLine line("braid simulate --plan FILE [options]", flags);
  line.add_plan();
  line.add_planning("braid");
  line.add_threads();
  line.add_timeline();
  line.add().add_options()("window", boost::program_options::value(&window)->default_value(0),
                           "which window the trace shows");
  if (!line.parse(words)) return kSuccess;
  planner::Plan plan = plan_from_flags(flags);
  const Data data = load_data(plan.workload, false);
  const std::int64_t windows = planner::window_count(plan.fixed, planner::input_of(plan, data.samples));
  if (window < 0 || window >= windows)
    throw error("--window {} is not usable; the plan has windows 0..{}", window, windows - 1);
  const costmodel::CostModel cost(plan.profile);
  const planner::WindowInput input = planner::input_of(plan, data.samples);
  planner::ClockLatency latency(cost, plan.workload.backbone);
  plan.predicted = planner::predict(plan.fixed, input, latency, judge_by_replay());
  if (!flags.timeline_out.empty()) {
    auto [program, timeline] = replay_window(plan, input, window, latency);
    add_memory(program, planner::memory_context(plan.fixed, plan.workload), timeline);
    const std::vector<std::string> names = task_names(plan.workload);
    write_file(flags.timeline_out, [&, &shown = program, &times = timeline](std::ostream& out) {
      planner::write_trace(shown, times, names, out);
    });
  }
  std::optional<CourseForecast> course;
  if (has_search(plan.workload)) course = forecast_course(plan, data.samples);
  if (flags.json) {
    fmt::print("{}", prediction_json(plan, course));
  } else {
    fmt::print("simulated {} on {} ranks\n", plan.policy, plan.ranks());
    print_prediction(plan.predicted, plan.ranks(), planner::streams(plan.fixed));
    if (course)
      fmt::print("  the whole run       {} with halving ({} steps), {} without ({} steps)\n",
                 duration(course->halved_seconds), grouped(static_cast<double>(course->halved_steps)),
                 duration(course->seconds), grouped(static_cast<double>(course->steps)));
  }
  return kSuccess;
}

}  // namespace braid::cli

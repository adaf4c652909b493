#include <algorithm>
#include <optional>
#include <ostream>

#include <boost/program_options/value_semantic.hpp>
#include <fmt/core.h>

#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/support/replayed.h"
#include "cli/support/results.h"
#include "cli/support/session.h"
#include "planner/window/predict.h"
#include "planner/window/unit_stream.h"

namespace braid::cli {

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
    const std::vector<std::string> names = task_names(plan.workload);
    write_file(flags.timeline_out,
               [&](std::ostream& out) { write_replay(plan, input, window, window + 1, names, out); });
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

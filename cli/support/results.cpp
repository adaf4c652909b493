#include "cli/support/results.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "planner/plan/deployment.h"
#include "planner/window/unit_stream.h"

namespace braid::cli {

std::string duration(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (seconds < 120) return fmt::format("{:.1f} s", seconds);
  const std::int64_t whole = std::llround(seconds);
  return fmt::format("{} min {} s", whole / 60, whole % 60);
}

std::string grouped(double number) {
  std::string digits = fmt::format("{:.0f}", number);
  for (std::ptrdiff_t i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > 0; i -= 3)
    digits.insert(static_cast<std::size_t>(i), ",");
  return digits;
}

namespace {

/// A line for each run of like values: "stage 0", "stages 1 to 3".
void print_alike(std::string_view each, std::string_view what, const std::vector<std::string>& values) {
  for (std::size_t first = 0, next = 0; first < values.size(); first = next) {
    while (next < values.size() && values[next] == values[first]) ++next;
    const std::string label = next - first == 1 ? fmt::format("{} {} {}", each, first, what)
                                                : fmt::format("{}s {}-{} {}", each, first, next - 1, what);
    fmt::print("  {:<19} {}\n", label, values[first]);
  }
}

/// What was given up for less memory, and what is left of it.
void print_preferred(const planner::Preferred& preferred, const planner::Plan& plan) {
  fmt::print("  {}\n", describe(preferred, plan.predicted));
  if (preferred.free_memory_bytes > 0)
    fmt::print(
        "  left free           {} of {} a rank, whatever the plan\n", describe_bytes(preferred.free_memory_bytes),
        describe_bytes(preferred.free_memory_bytes + usable_memory(plan.profile, planner::Preference::memory).usable));
}

}  // namespace

void print_prediction(const planner::Prediction& prediction, std::int32_t ranks, bool streams) {
  const std::string first =
      streams ? fmt::format(" ({} from an empty pipeline to an empty one)", duration(prediction.first_step_seconds))
              : "";
  fmt::print("  step                {}{}\n", duration(prediction.step_seconds), first);
  fmt::print("  computed tokens/s   {}\n", grouped(prediction.tokens_per_second));
  fmt::print("  effective tokens/s  {} (billed: samples x max_length)\n",
             grouped(prediction.effective_tokens_per_second));
  fmt::print("  data tokens/s       {}\n", grouped(prediction.data_tokens_per_second));
  fmt::print("  bubble ratio        {:.1f} %\n", 100 * prediction.bubble_ratio);
  std::vector<std::string> busy, peaks;
  for (const double share : prediction.stage_busy_share) busy.push_back(fmt::format("{:.1f} %", 100 * share));
  for (const Bytes peak : prediction.peak_memory_bytes) peaks.push_back(describe_bytes(peak));
  print_alike("stage", "busy", busy);
  fmt::print("  of {} rank{} peak     {:.1f} %\n", ranks, ranks == 1 ? "'s" : "s'", 100 * prediction.gpu_utilization);
  print_alike("rank", "peak memory", peaks);
  if (prediction.energy_joules) fmt::print("  energy              {:.0f} J a step\n", *prediction.energy_joules);
  if (prediction.chunk_padding_share > 0)
    fmt::print("  chunk padding       {:.1f} % of the computed tokens fill chunks up, billed to nobody\n",
               100 * prediction.chunk_padding_share);
  if (prediction.extrapolated_share > 0)
    fmt::print("  extrapolated        {:.1f} % of the predicted time lies beyond what was measured\n",
               100 * prediction.extrapolated_share);
}

void print_plan(const planner::Plan& plan) {
  std::string options;
  for (const auto& [key, value] : plan.options) options += fmt::format(":{}={}", key, value);
  fmt::print("policy {}{}\n", plan.policy, options);
  if (!plan.profile.device.empty()) fmt::print("  on {}\n", describe(plan.profile));
  const std::vector<planner::ReplicaShape>& replicas = plan.fixed.deployment;
  for (auto first = replicas.begin(), next = first; first != replicas.end(); first = next) {
    next = std::find_if(first, replicas.end(), [&](const planner::ReplicaShape& other) { return other != *first; });
    std::vector<std::string> stages;
    for (const planner::LayerRange& layers : first->layers)
      stages.push_back(fmt::format("[{}, {})", layers.first, layers.last));
    fmt::print("  {}: layers {}\n", planner::describe({first, next}), fmt::join(stages, " "));
  }
  std::vector<std::string> htasks;
  for (const std::vector<planner::TaskIndex>& htask : plan.fixed.htasks) {
    std::vector<std::string> names;
    for (const planner::TaskIndex task : htask)
      names.push_back(plan.workload.tasks[static_cast<std::size_t>(task)].name);
    htasks.push_back(fmt::format("{}", fmt::join(names, "+")));
  }
  fmt::print("  hTasks {}; {}, {}, padded to {}, tasks {}\n", fmt::join(htasks, " | "),
             describe_microbatches(plan.fixed), name(plan.fixed.schedule.pipeline), describe_padding(plan.fixed),
             describe_turns(plan.fixed));
  fmt::print("predicted\n");
  print_prediction(plan.predicted, plan.ranks(), streams(plan.fixed));
  if (plan.preferred) print_preferred(*plan.preferred, plan);
  if (plan.truncated)
    fmt::print("  truncated           a limit of seconds ended the search early; another run may find another plan\n");
  fmt::print("  lower bound         {} ({}), {} on this deployment; gap {:.1f} %\n",
             duration(plan.lower_bound.step_seconds), plan.lower_bound.binds,
             duration(plan.lower_bound.deployment_step_seconds),
             plan.lower_bound.step_seconds > 0 ? 100 * (plan.predicted.step_seconds / plan.lower_bound.step_seconds - 1)
                                               : 0.0);
}

std::string prediction_json(const planner::Plan& plan, const std::optional<CourseForecast>& course) {
  auto json = nlohmann::ordered_json::parse(planner::to_json(plan))["predicted"];
  if (course)
    json["run"] = {{"seconds", course->seconds},
                   {"steps", course->steps},
                   {"halved_seconds", course->halved_seconds},
                   {"halved_steps", course->halved_steps}};
  return json.dump(1) + "\n";
}

}  // namespace braid::cli

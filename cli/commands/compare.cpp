#include <algorithm>
#include <limits>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/terminal.h"
#include "cli/command.h"
#include "cli/support/results.h"
#include "cli/support/session.h"
#include "planner/policies/registry.h"

namespace braid::cli {
namespace {

std::string all_policies() {
  std::vector<std::string_view> names;
  for (const auto& policy : planner::policies()) names.push_back(policy->name());
  return fmt::format("{}", fmt::join(names, ","));
}

Bytes peak_of(const planner::Plan& plan) {
  return *std::max_element(plan.predicted.peak_memory_bytes.begin(), plan.predicted.peak_memory_bytes.end());
}

double gap_of(const planner::Plan& plan) {
  return plan.predicted.step_seconds / plan.lower_bound.step_seconds - 1;
}

std::string to_json(const std::vector<PlanOrError>& plans) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const PlanOrError& made : plans) {
    nlohmann::ordered_json row = {{"policy", spelled(made.choice)}};
    if (!made.plan) {
      row["error"] = made.error;
    } else {
      const planner::Plan& plan = *made.plan;
      row["deployment"] = describe(plan.fixed.deployment);
      if (!plan.fixed.dispatch && !plan.fixed.batching.bins) row["microbatches"] = plan.fixed.batching.microbatches;
      row["htasks"] = plan.fixed.htasks.size();
      row["buckets"] = plan.fixed.buckets.size();
      row["predicted"] = nlohmann::ordered_json::parse(prediction_json(plan));
      if (plan.preferred)
        row["preferred"] = {{"given_up", given_up(*plan.preferred, plan.predicted)},
                            {"saved_memory_bytes", saved(*plan.preferred, plan.predicted)}};
      row["lower_bound"] = {{"step_seconds", plan.lower_bound.step_seconds}, {"binds", plan.lower_bound.binds}};
      row["planning_seconds"] = plan.planning_seconds;
    }
    rows.push_back(row);
  }
  return nlohmann::ordered_json{{"format", 1}, {"policies", rows}}.dump(1) + "\n";
}

/// Beside the fastest plan: memory that this one spares, and how much longer its step takes; dashes where it is that
/// plan.
std::string preferred_columns(const planner::Plan& plan) {
  if (!plan.preferred) return "";
  if (saved(*plan.preferred, plan.predicted) <= 0) return fmt::format(" {:>10} {:>8}", "-", "-");
  return fmt::format(" {:>10} {:>7.1f}%", describe_bytes(saved(*plan.preferred, plan.predicted)),
                     100 * given_up(*plan.preferred, plan.predicted));
}

/// Steps that rest on what was not measured by more than this are marked.
constexpr double kMarkedShare = 0.05;

bool is_marked(const PlanOrError& made) {
  return made.plan && made.plan->predicted.extrapolated_share > kMarkedShare;
}

void print(const std::vector<PlanOrError>& plans) {
  std::size_t width = 12, deployed = 24;
  for (const PlanOrError& made : plans) {
    width = std::max(width, spelled(made.choice).size());
    if (made.plan) deployed = std::max(deployed, describe(made.plan->fixed.deployment).size());
  }
  const bool preferred = std::any_of(plans.begin(), plans.end(),
                                     [](const PlanOrError& made) { return made.plan && made.plan->preferred; });
  const std::string heading =
      fmt::format("{:{}} {:{}} {:>4} {:>11}  {:>13} {:>13} {:>7} {:>10}{} {:>10} {:>6}", "policy", width, "deployment",
                  deployed, "mb", "step", "effective/s", "data/s", "bubble", "peak",
                  preferred ? fmt::format(" {:>10} {:>8}", "saved", "given up") : "", "bound", "gap");
  fmt::print("{}\n", toned(heading, Tone::heading, stdout));
  const auto step_of = [](const PlanOrError& made) {
    return made.plan ? made.plan->predicted.step_seconds : std::numeric_limits<double>::infinity();
  };
  double fastest = std::numeric_limits<double>::infinity();
  for (const PlanOrError& made : plans) fastest = std::min(fastest, step_of(made));
  for (const PlanOrError& made : plans) {
    if (!made.plan) {
      fmt::print("{:{}} {}\n", spelled(made.choice), width, made.error);
      continue;
    }
    const planner::Plan& plan = *made.plan;
    const std::string line = fmt::format(
        "{:{}} {:{}} {:>4} {:>11}{} {:>13} {:>13} {:>6.1f}% {:>10}{} {:>10} {:>5.1f}%", spelled(made.choice), width,
        describe(plan.fixed.deployment), deployed,
        plan.fixed.dispatch || plan.fixed.batching.bins ? "-" : fmt::format("{}", plan.fixed.batching.microbatches),
        duration(plan.predicted.step_seconds), is_marked(made) ? '~' : ' ',
        grouped(plan.predicted.effective_tokens_per_second), grouped(plan.predicted.data_tokens_per_second),
        100 * plan.predicted.bubble_ratio, describe_bytes(peak_of(plan)), preferred_columns(plan),
        duration(plan.lower_bound.step_seconds), 100 * gap_of(plan));
    fmt::print("{}\n", plans.size() > 1 && step_of(made) <= fastest ? toned(line, Tone::best, stdout) : line);
  }
  if (std::any_of(plans.begin(), plans.end(), is_marked))
    fmt::print("~ more than {:.0f} % of the step lies beyond what was measured; `braid plan` says how much\n",
               100 * kMarkedShare);
}

}  // namespace

int run_compare(const std::vector<std::string>& words) {
  CommonFlags flags;
  CommandLine line("braid compare --workload FILE [options]", flags);
  line.add_planning(all_policies());
  line.add_threads();
  line.add_out("results as JSON");
  if (!line.parse(words)) return kSuccess;
  if (!flags.out.empty() && std::filesystem::exists(flags.out) && !flags.overwrite)
    throw error("{}: exists; give another file or --overwrite", flags.out);
  if (!flags.out.empty()) check_writable(flags.out);
  const std::vector<PlanOrError> plans = make_plans_from_flags(flags);
  const bool any =
      std::any_of(plans.begin(), plans.end(), [](const PlanOrError& made) { return made.plan.has_value(); });
  if (any && !flags.out.empty()) write_file(flags.out, to_json(plans));
  if (flags.json) {
    fmt::print("{}", to_json(plans));
  } else {
    print(plans);
  }
  return any ? kSuccess : kBadInput;
}

}  // namespace braid::cli

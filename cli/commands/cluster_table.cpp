#include "cli/commands/cluster_table.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/terminal.h"
#include "cli/commands/trace_input.h"
#include "cli/support/results.h"
#include "traces/trace_statistics.h"

namespace braid::cli {
namespace {

using nlohmann::ordered_json;

/// A column: its head, and a metric in a unit.
struct Column {
  const char* head;
  const char* metric;
  double unit;
  const char* format;
};
constexpr Column kColumns[] = {
    {"tokens/s", "tokens_per_second", 1, "{:.0f}"},
    {"saturated", "saturated_tokens_per_second", 1, "{:.0f}"},
    {"completion h", "completion_mean_seconds", 3600, "{:.2f}"},
    {"p99 h", "completion_p99_seconds", 3600, "{:.1f}"},
    {"queueing h", "queueing_mean_seconds", 3600, "{:.2f}"},
    {"allocated", "gpu_allocation", 1, "{:.3f}"},
    {"fairness", "finish_time_fairness_mean", 1, "{:.2f}"},
    {"due met", "deadlines_met", 1, "{:.3f}"},
    {"preempted", "preemptions", 1, "{:.0f}"},
    {"lost GPU h", "lost_gpu_hours", 1, "{:.1f}"},
    {"kWh", "energy_kwh", 1, "{:.0f}"},
    {"cost", "cost", 1, "{:.0f}"},
};

std::string cell(const ordered_json& metrics, const Column& column) {
  const auto found = metrics.find(column.metric);
  if (found == metrics.end()) return "";
  std::string text = fmt::format(fmt::runtime(column.format), (*found)["mean"].get<double>() / column.unit);
  if (const auto half = found->find("ci95"); half != found->end())
    text += "±" + fmt::format(fmt::runtime(column.format), half->get<double>() / column.unit);
  return text;
}

/// As columns on a screen: "±" takes two bytes.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

/// The first row heads the others; columns that are blank below it are left out.
void print_rows(const std::vector<std::vector<std::string>>& rows, std::size_t left_aligned) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width(row[c]));
  }
  for (std::size_t c = 0; c < widths.size(); ++c) {
    const auto is_blank = [&](const auto& row) { return row[c].empty(); };
    if (std::all_of(rows.begin() + 1, rows.end(), is_blank)) widths[c] = 0;
  }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (widths[c] == 0) continue;
      const std::string pad(widths[c] - width(row[c]), ' ');
      line += (c > 0 ? "  " : "") + (c < left_aligned ? row[c] + pad : pad + row[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print("{}\n", &row == &rows.front() ? toned(line, Tone::heading, stdout) : line);
  }
}

/// What a setting is in the runs, each value once.
template <typename Tell>
std::string listed(const std::vector<sim::RunSettings>& runs, const Tell& tell) {
  std::vector<std::string> values;
  for (const sim::RunSettings& run : runs) {
    std::string value = tell(run.settings);
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(std::move(value));
  }
  return fmt::format("{}", fmt::join(values, ", "));
}

}  // namespace

void print_study(const sim::Study& study, const sim::StudySettings& settings,
                 const std::vector<workload::Workload>& kinds, const std::vector<sim::RunSettings>& runs) {
  const traces::Trace& trace = study.trace();
  const workload::Cluster& cluster = settings.cluster;
  fmt::print("trace         {} ({}), {} jobs{}\n", trace.source, trace.format,
             grouped(static_cast<double>(trace.jobs.size())),
             study.draws_traces() && runs.front().seed != runs.back().seed ? ", others for each seed" : "");
  print_irregularities(trace);
  fmt::print("cluster       {} {}, {} a node\n",
             listed(runs, [](const sim::StudySettings& run) { return fmt::format("{}", run.cluster.gpus()); }),
             cluster.gpu, cluster.gpus_per_node);
  const auto instance = [](const sim::StudySettings& run) { return fmt::format("{}", sim::instance_gpus(run)); };
  const bool recorded = settings.as_recorded || settings.recorded_job_gpus;
  if (runs.front().settings.load > 0) {
    fmt::print("offered load  {}, as asked for\n",
               listed(runs, [](const sim::StudySettings& run) { return fmt::format("{:.2f}", run.load); }));
  } else {
    const auto offered = [&](const sim::StudySettings& run) {
      const double load = sim::offered_load(run, trace);
      return std::isfinite(load) ? fmt::format("{:.2f}", load) : "none (all jobs come at one moment)";
    };
    const auto job_gpus = [&](const sim::StudySettings& run) {
      return run.job_gpus > 0 ? fmt::format("{}", run.job_gpus) : instance(run);
    };
    fmt::print("offered load  {}, {}\n", listed(runs, offered),
               recorded ? "with the recorded GPUs" : fmt::format("with {} GPUs a job", listed(runs, job_gpus)));
  }
  if (!settings.as_recorded) {
    fmt::print("tasks         {} configurations on {}: {} x batches of {} x rank {}\n",
               kinds.size() * kinds.front().tasks.size(), fmt::join(settings.configurations.backbones, ", "),
               fmt::join(settings.configurations.datasets, ", "), fmt::join(settings.configurations.batch_sizes, ", "),
               fmt::join(settings.configurations.ranks, ", "));
    fmt::print("instances     {} GPUs, at most {} tasks\n", listed(runs, instance),
               listed(runs, [](const sim::StudySettings& run) { return fmt::format("{}", run.most_tasks); }));
  }
  fmt::print("runs          {}\n\n", runs.size());
  std::fflush(stdout);
}

void print_summary(const std::string& summary) {
  const ordered_json study = ordered_json::parse(summary);
  std::vector<std::vector<std::string>> rows;
  std::size_t named = 0;
  for (const ordered_json& group : study["groups"]) {
    std::vector<std::string> head, row;
    for (const auto& [key, value] : group.items()) {
      if (key == "seeds") break;
      head.push_back(key);
      row.push_back(value.get<std::string>());
    }
    named = head.size();
    for (const Column& column : kColumns) {
      head.emplace_back(column.head);
      row.push_back(cell(group["metrics"], column));
    }
    if (rows.empty()) rows.push_back(head);
    rows.push_back(row);
  }
  print_rows(rows, named);
  std::int64_t audited = 0;
  std::set<std::string> rejected;
  for (const ordered_json& run : study["runs"]) {
    if (run.contains("estimates")) audited += run["estimates"]["audited"].get<std::int64_t>();
    if (run.contains("rejected")) rejected.insert(run["rejected"].begin(), run["rejected"].end());
  }
  if (!rejected.empty())
    fmt::print(
        "\nrejected      {} of the jobs, in some run: larger than the cluster, of a kind that fits no instance, or "
        "over "
        "budget; summary.json names them\n",
        rejected.size());
  if (audited > 0)
    fmt::print(
        "\nestimates     {} held against full replays, off by {:.2f} % at the 99th percentile of the worst run\n",
        audited, 100 * worst_error(summary));
}

double worst_error(const std::string& summary) {
  double worst = 0;
  const ordered_json study = ordered_json::parse(summary);
  for (const ordered_json& run : study["runs"]) {
    if (run.contains("estimates")) worst = std::max(worst, run["estimates"]["error_p99"].get<double>());
  }
  return worst;
}

}  // namespace braid::cli

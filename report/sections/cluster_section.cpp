#include <algorithm>
#include <limits>

#include <fmt/core.h>

#include "report/charts/bar_chart.h"
#include "report/charts/heat_map.h"
#include "report/charts/line_chart.h"
#include "report/sections/sections.h"
#include "report/sources/cluster_study.h"

namespace braid::report {
namespace {

using Group = ClusterStudy::Group;

const std::string kCompletion = "completion_mean_seconds";

std::vector<const Group*> by_completion(const ClusterStudy& study) {
  std::vector<const Group*> groups;
  for (const Group& group : study.groups) groups.push_back(&group);
  std::ranges::stable_sort(groups, {}, [](const Group* group) {
    return group->mean(kCompletion).value_or(std::numeric_limits<double>::infinity());
  });
  return groups;
}

std::string cell(std::optional<double> value, double size = 1, std::string_view unit = {}) {
  if (!value) return "–";
  return number_text(*value / size) + std::string(unit);
}

/// Half the interval of its mean completion time.
std::string half_of(const Group& group, const Unit& unit) {
  const auto completion = group.metrics.find(kCompletion);
  if (completion == group.metrics.end() || !completion->second.half) return "–";
  return number_text(unit.of(*completion->second.half));
}

void add_table(const ClusterStudy& study, const std::vector<const Group*>& groups, const Unit& unit, Section& section) {
  section.table.columns = {"",
                           "completion / " + unit.name,
                           "± 95 %",
                           "99th percentile / " + unit.name,
                           "queueing / " + unit.name,
                           "GPUs allocated",
                           "billed tokens/s"};
  for (const Group* group : groups) {
    section.table.rows.push_back(
        {study.name(*group), cell(group->mean(kCompletion), unit.size), half_of(*group, unit),
         cell(group->mean("completion_p99_seconds"), unit.size), cell(group->mean("queueing_mean_seconds"), unit.size),
         group->mean("gpu_allocation") ? fmt::format("{:.1f} %", 100 * *group->mean("gpu_allocation")) : "–",
         cell(group->mean("tokens_per_second"))});
  }
}

Figure bars(const ClusterStudy& study, const std::vector<const Group*>& groups, const Unit& unit) {
  BarChart chart;
  chart.x.label = "mean completion time / " + unit.name;
  for (const Group* group : groups) {
    const auto metric = group->metrics.find(kCompletion);
    if (metric == group->metrics.end()) continue;
    Bar& bar = chart.bars.emplace_back(Bar{study.name(*group), unit.of(metric->second.mean)});
    if (metric->second.half) bar.half = unit.of(*metric->second.half);
  }
  if (chart.bars.empty()) return {};
  const Bar &first = chart.bars.front(), &last = chart.bars.back();
  chart.what = chart.bars.size() == 1 ? fmt::format("Jobs take {} {} in the mean.", number_text(first.value), unit.name)
                                      : fmt::format("{} has jobs done soonest, in {:.2f} times less time than {}.",
                                                    first.name, last.value / first.value, last.name);
  return {chart.what, to_html(chart), {}};
}

Figure distribution(const ClusterStudy& study, const std::vector<const Group*>& groups, const Unit& unit) {
  LineChart chart;
  chart.x = {"completion time / " + unit.name, true};
  chart.y = {"share of jobs", false, 0.0, 1.0};
  for (const Group* group : groups) {
    if (chart.series.size() == kColours) break;
    std::vector<double> values;
    for (const double seconds : group->completion_seconds)
      if (seconds > 0) values.push_back(unit.of(seconds));
    if (!values.empty()) chart.series.push_back(cumulative(study.name(*group), std::move(values)));
  }
  if (chart.series.empty()) return {};
  const auto median = [](const Series& series) {
    for (const auto& [value, share] : series.points)
      if (share >= 0.5) return value;
    return series.points.back().first;
  };
  const auto best = std::ranges::min_element(chart.series, {}, median);
  chart.what =
      fmt::format("Half of all jobs are done after {} {} with {}{}.", number_text(median(*best)), unit.name, best->name,
                  groups.size() > kColours
                      ? fmt::format(" (the {} best of {} are drawn)", static_cast<int>(kColours), groups.size())
                      : "");
  return {chart.what, to_html(chart), {}};
}

Figure over_time(const ClusterStudy& study, const std::vector<const Group*>& groups, bool queue) {
  LineChart chart;
  double end = 0, most = 0;
  for (const Group* group : groups)
    for (const Group::Hour& hour : group->hours) end = std::max(end, hour.from_seconds);
  const bool days = end > 4 * 86400;
  chart.x.label = days ? "time / d" : "time / h";
  chart.y.label = queue ? "jobs that wait" : "GPUs allocated";
  chart.y.from = 0;
  std::string longest;
  for (const Group* group : groups) {
    if (chart.series.size() == kColours || group->hours.empty()) continue;
    Series& series = chart.series.emplace_back(Series{study.name(*group), {}, true});
    for (const Group::Hour& hour : group->hours) {
      const double value = queue ? hour.waiting : hour.gpus;
      series.points.emplace_back(hour.from_seconds / (days ? 86400 : 3600), value);
      if (value > most) most = value, longest = series.name;
    }
  }
  if (chart.series.empty()) return {};
  if (queue) {
    chart.what =
        most > 0 ? fmt::format("The queue is the longest with {}: {:.0f} jobs in the mean of an hour.", longest, most)
                 : "Nobody ever waits.";
  } else {
    chart.what = fmt::format("Of {} GPUs up to {} are at work.", study.gpus, number_text(most));
    chart.levels.push_back({"GPUs of the cluster", static_cast<double>(study.gpus)});
  }
  return {chart.what, to_html(chart), {}};
}

/// What was varied last across, all else down.
Figure field(const ClusterStudy& study, const Unit& unit) {
  if (study.varied.size() < 2) return {};
  HeatMap map;
  map.column_label = study.varied.back();
  map.value_label = "mean completion / " + unit.name;
  ClusterStudy others = study;
  others.varied.pop_back();
  for (const std::string& key : others.varied) map.row_label += (map.row_label.empty() ? "" : ", ") + key;
  const auto place = [](std::vector<std::string>& names, const std::string& name) {
    const auto found = std::ranges::find(names, name);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
    names.push_back(name);
    return names.size() - 1;
  };
  std::string best;
  double least = std::numeric_limits<double>::infinity();
  for (const Group& group : study.groups) {
    std::string column;
    for (const auto& [name, value] : group.identity)
      if (name == map.column_label) column = value;
    const std::size_t row = place(map.rows, others.name(group)), across = place(map.columns, column);
    map.values.resize(map.rows.size());
    for (auto& values : map.values) values.resize(map.columns.size());
    const std::optional<double> mean = group.mean(kCompletion);
    if (!mean) continue;
    map.values[row][across] = unit.of(*mean);
    if (*mean < least) least = *mean, best = study.name(group);
  }
  for (auto& values : map.values) values.resize(map.columns.size());
  map.what =
      fmt::format("Mean completion time in {}: the least is {} with {}.", unit.name, number_text(unit.of(least)), best);
  return {map.what, to_html(map), {}};
}

}  // namespace

Section cluster_section(const std::filesystem::path& folder) {
  const ClusterStudy study = read_cluster_study(folder);
  Section section{"Cluster study: " + folder.filename().string(), folder.string()};
  section.paragraphs.push_back(fmt::format(
      "{} jobs ({}) on {} {} GPUs; {}.", number_text(static_cast<double>(study.job_count)),
      study.trace.starts_with("/dev/") ? "from a pipe" : std::filesystem::path(study.trace).filename().string(),
      study.gpus, study.gpu,
      study.jobs == "as-recorded" ? "each on its recorded GPUs for its recorded time" : "each a task of fine-tuning"));
  const std::vector<const Group*> groups = by_completion(study);
  double longest = 0;
  for (const Group* group : groups) longest = std::max(longest, group->mean(kCompletion).value_or(0));
  const Unit unit = unit_of_seconds(longest);
  add_table(study, groups, unit, section);
  for (Figure& figure :
       std::vector<Figure>{bars(study, groups, unit), field(study, unit), distribution(study, groups, unit),
                           over_time(study, groups, true), over_time(study, groups, false)})
    if (!figure.html.empty()) section.figures.push_back(std::move(figure));
  if (std::ranges::any_of(study.groups, [](const Group& group) { return group.seeds > 1; }))
    section.paragraphs.emplace_back(
        "Means and their intervals are of all seeds, what is drawn over time or as a distribution of the first alone.");
  return section;
}

}  // namespace braid::report

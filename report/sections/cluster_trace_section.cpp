#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "report/charts/line_chart.h"
#include "report/charts/pipeline_chart.h"
#include "report/sections/sections.h"

namespace braid::report {
namespace {

constexpr int kMostNodes = 8;  // drawn

/// What the whole cluster did: GPUs and jobs, hour by hour.
Figure counters_figure(const Trace& trace, const Unit& unit) {
  LineChart chart;
  chart.x.label = "time / " + unit.name;
  chart.y.label = "in the mean of an hour";
  chart.y.from = 0;
  double longest = 0;
  for (const auto& [name, samples] : trace.counters) {
    Series series{name, {}, true};
    for (const auto& [at, value] : samples) {
      series.points.emplace_back(unit.of(at), value);
      if (name == "jobs waiting") longest = std::max(longest, value);
    }
    chart.series.push_back(std::move(series));
  }
  if (chart.series.empty()) return {};
  chart.what =
      longest > 0 ? fmt::format("Up to {} jobs wait for GPUs.", number_text(longest)) : "No job waits for GPUs.";
  return {chart.what, to_html(chart), {}};
}

/// Who ran where, a lane for each place of an instance.
Figure nodes_figure(const Trace& trace, const Unit& unit) {
  PipelineChart chart;
  chart.x.label = "time / " + unit.name;
  std::map<int, std::map<int, Lane>> lanes;  // by node and place
  std::size_t stretches = 0;
  for (const Trace::Event& event : trace.events) {
    ++stretches;
    if (!lanes.contains(event.rank) && lanes.size() == kMostNodes) continue;
    Lane& lane = lanes[event.rank][event.lane];
    lane.name = fmt::format("task {}", event.lane);
    lane.work.push_back(
        {unit.of(event.begin), unit.of(event.end),
         colour_of(static_cast<std::size_t>(std::max(event.lane - 1, 0)) % kColours),
         fmt::format("job {}: {} {} from {} on", event.name, number_text(unit.of(event.end - event.begin)), unit.name,
                     number_text(unit.of(event.begin)))});
  }
  for (auto& [node, places] : lanes) {
    const auto name = trace.ranks.find(node);
    LaneGroup& group = chart.groups.emplace_back();
    group.name = name == trace.ranks.end() ? fmt::format("node {}", node) : name->second;
    for (auto& [place, lane] : places) group.lanes.push_back(std::move(lane));
  }
  chart.what = fmt::format("Where jobs ran, {} stretches of them{}.", stretches,
                           lanes.size() == kMostNodes ? fmt::format("; the first {} nodes", kMostNodes) : "");
  return {chart.what, to_html(chart), {}};
}

}  // namespace

Section cluster_trace_section(const Trace& trace, const std::filesystem::path& source) {
  Section section{"Jobs on a cluster", source.string()};
  const Unit unit = unit_of_seconds(trace.end());
  if (Figure counters = counters_figure(trace, unit); !counters.html.empty())
    section.figures.push_back(std::move(counters));
  if (!trace.events.empty()) section.figures.push_back(nodes_figure(trace, unit));
  return section;
}

}  // namespace braid::report

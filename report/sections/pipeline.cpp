#include <algorithm>
#include <map>
#include <set>
#include <span>

#include <fmt/core.h>

#include "report/charts/line_chart.h"
#include "report/charts/pipeline_chart.h"
#include "report/sections/sections.h"

namespace braid::report {
namespace {

constexpr std::size_t kMostRanks = 16;     // drawn
constexpr std::size_t kMostEvents = 2500;  // likewise, of a trace

bool is_pass(const Trace::Event& event) {
  return event.kind == "Forward" || event.kind == "Backward";
}

/// The share of the time in which compute streams are at work.
double busy_share(const Trace& trace) {
  double busy = 0;
  std::set<int> ranks;
  for (const Trace::Event& event : trace.events) {
    if (event.stream != "compute") continue;
    busy += event.end - event.begin;
    ranks.insert(event.rank);
  }
  const double span = trace.end() * static_cast<double>(ranks.size());
  return span > 0 ? busy / span : 0;
}

class Lanes {
 public:
  explicit Lanes(Unit unit) : unit_(std::move(unit)) {}

  LaneGroup group(const std::string& name, const Trace& trace) {
    LaneGroup group{fmt::format("{}: {} {}, {:.0f} % of it at work", name, number_text(unit_.of(trace.end())),
                                unit_.name, 100 * busy_share(trace)),
                    {}};
    std::map<std::pair<int, bool>, Lane> lanes;  // messages below compute
    const std::size_t most = std::min(trace.events.size(), kMostEvents);
    for (const Trace::Event& event : std::span(trace.events).first(most)) {
      // A receive stands from when it is posted on.
      if (static_cast<std::size_t>(event.rank) >= kMostRanks || event.stream == "recv") continue;
      const bool messages = event.stream != "compute";
      Lane& lane = lanes[{event.rank, messages}];
      lane.name = fmt::format("rank {}", event.rank);
      lane.thin = messages;
      lane.work.push_back(
          {unit_.of(event.begin), unit_.of(event.end), kind_of(event),
           fmt::format("{}: {} {} from {} on", event.name, number_text(unit_.of(event.end - event.begin)), unit_.name,
                       number_text(unit_.of(event.begin)))});
    }
    for (auto& [key, lane] : lanes) group.lanes.push_back(std::move(lane));
    return group;
  }

  std::vector<std::pair<std::string, std::string>> legend() const {
    std::vector<std::pair<std::string, std::string>> names;
    for (const auto& [tasks, number] : ordered())
      names.emplace_back(colour_of(number), tasks.empty() ? "passes" : tasks);
    names.emplace_back("c7 back", "the lighter: backward");
    names.emplace_back("step", "optimizer step");
    names.emplace_back("message", "messages and sums");
    return names;
  }

 private:
  std::string kind_of(const Trace::Event& event) {
    if (event.stream != "compute") return "message";
    if (!is_pass(event)) return "step";
    const std::size_t number = colours_.try_emplace(event.tasks, colours_.size()).first->second;
    return colour_of(number) + (event.kind == "Backward" ? " back" : "");
  }
  std::vector<std::pair<std::string, std::size_t>> ordered() const {
    std::vector<std::pair<std::string, std::size_t>> all(colours_.begin(), colours_.end());
    std::ranges::sort(all, {}, &std::pair<std::string, std::size_t>::second);
    if (all.size() > kColours) all.resize(kColours);
    return all;
  }

  Unit unit_;
  std::map<std::string, std::size_t> colours_;  // by what tasks a pass is of
};

}  // namespace

Figure pipeline_figure(const std::vector<std::pair<std::string, Trace>>& traces) {
  double end = 0;
  for (const auto& [name, trace] : traces) end = std::max(end, trace.end());
  const Unit unit = unit_of_seconds(end);
  Lanes lanes(unit);
  PipelineChart chart;
  chart.x.label = "time / " + unit.name;
  for (const auto& [name, trace] : traces) chart.groups.push_back(lanes.group(name, trace));
  chart.legend = lanes.legend();
  if (traces.size() == 2) {
    const double predicted = traces[0].second.end(), measured = traces[1].second.end();
    chart.what = fmt::format("The {} pipeline takes {} {}, the {} one {} {} ({} of it).", traces[0].first,
                             number_text(unit.of(predicted)), unit.name, traces[1].first,
                             number_text(unit.of(measured)), unit.name, signed_percent(predicted / measured - 1));
  } else {
    chart.what = fmt::format("What each rank does over {} {}: compute streams are at work {:.0f} % of it.",
                             number_text(unit.of(end)), unit.name, 100 * busy_share(traces.front().second));
  }
  return {chart.what, to_html(chart), {}};
}

Figure memory_figure(const std::vector<std::pair<std::string, Trace>>& traces, std::optional<double> limit) {
  double end = 0, most = 0;
  for (const auto& [name, trace] : traces) {
    end = std::max(end, trace.end());
    for (const auto& [rank, samples] : trace.memory)
      for (const auto& [time, bytes] : samples) most = std::max(most, bytes);
  }
  if (most == 0) return {};
  const bool near = limit && *limit < 3 * most;  // else the curves would be flat
  const Unit time = unit_of_seconds(end), size = unit_of_bytes(near ? *limit : most);
  LineChart chart;
  chart.x.label = "time / " + time.name;
  chart.y.label = "memory of a rank / " + size.name;
  chart.y.from = 0;
  Table peaks{{"rank"}, {}};
  std::map<int, std::vector<std::string>> rows;
  for (const auto& [name, trace] : traces) {
    peaks.columns.push_back(name == "measured" ? "most that is measured after a pass / " + size.name
                                               : name + " peak / " + size.name);
    for (const auto& [rank, samples] : trace.memory) {
      if (static_cast<std::size_t>(rank) >= kColours) continue;
      Series series{
          traces.size() > 1 ? fmt::format("rank {}, {}", rank, name) : fmt::format("rank {}", rank), {}, true};
      series.colour = static_cast<std::size_t>(rank);
      if (traces.size() > 1) series.dash = &name == &traces.front().first ? "dashed" : "solid";
      double peak = 0;
      for (const auto& [at, bytes] : samples) {
        series.points.emplace_back(time.of(at), size.of(bytes));
        peak = std::max(peak, bytes);
      }
      rows[rank].push_back(number_text(size.of(peak)));
      chart.series.push_back(std::move(series));
    }
  }
  for (const auto& [rank, cells] : rows) {
    std::vector<std::string> row{std::to_string(rank)};
    row.insert(row.end(), cells.begin(), cells.end());
    peaks.rows.push_back(std::move(row));
  }
  chart.what = fmt::format("The fullest rank holds {} {} at its peak", number_text(size.of(most)), size.name);
  if (limit) {
    const Unit whole = unit_of_bytes(*limit);
    chart.what += fmt::format(", {:.1f} % of the {} {} that it may hold", 100 * most / *limit,
                              number_text(whole.of(*limit)), whole.name);
    if (near) chart.levels.push_back({"limit of a rank", size.of(*limit)});
  }
  chart.what += ".";
  return {chart.what, to_html(chart), peaks};
}

}  // namespace braid::report

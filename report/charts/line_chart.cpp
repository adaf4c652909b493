#include "report/charts/line_chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "report/markup.h"

namespace braid::report {
namespace {

constexpr std::size_t kMostPoints = 600;   // drawn of a series
constexpr std::size_t kMostHovered = 120;  // that tell their values

/// The range of what can be shown, of all series and levels.
std::pair<Point, Point> ranges(const LineChart& chart) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  Point x{kFar, -kFar}, y{kFar, -kFar};
  const auto take = [](Point& range, double value, bool logarithmic) {
    if (!std::isfinite(value) || (logarithmic && value <= 0)) return;
    range = {std::min(range.first, value), std::max(range.second, value)};
  };
  for (const Series& series : chart.series) {
    for (const auto& [at, value] : series.points) {
      take(x, at, chart.x.logarithmic);
      take(y, value, chart.y.logarithmic);
    }
  }
  for (const Level& level : chart.levels) take(y, level.value, chart.y.logarithmic);
  for (Point* range : {&x, &y})
    if (range->first > range->second) *range = {chart.x.logarithmic ? 1 : 0, 1};
  return {x, y};
}

std::vector<Point> thinned(const std::vector<Point>& points) {
  if (points.size() <= kMostPoints) return points;
  std::vector<Point> fewer;
  const std::size_t stretches = kMostPoints / 2;
  for (std::size_t i = 0; i < stretches; ++i) {
    const auto first = points.begin() + static_cast<std::ptrdiff_t>(i * points.size() / stretches);
    const auto last = points.begin() + static_cast<std::ptrdiff_t>((i + 1) * points.size() / stretches);
    auto [least, most] = std::minmax_element(
        first, last, [](const Point& one, const Point& other) { return one.second < other.second; });
    if (least > most) std::swap(least, most);
    fewer.push_back(*least);
    if (most != least) fewer.push_back(*most);
  }
  fewer.back() = points.back();
  return fewer;
}

void draw_series(Drawing& drawing, const Plot& plot, const Series& series, const std::string& colour) {
  std::vector<Point> line;
  const auto flush = [&] {
    if (line.size() > 1) drawing.path(line, colour, series.name);
    line.clear();
  };
  const std::vector<Point> points = thinned(series.points);
  for (const auto& [x, y] : points) {
    if (!plot.x.shows(x) || !plot.y.shows(y)) {
      flush();
      continue;
    }
    const Point at{plot.x(x), plot.y(y)};
    if (series.steps && !line.empty()) line.push_back({at.first, line.back().second});
    line.push_back(at);
  }
  flush();
  const std::size_t every = points.size() / kMostHovered + 1;
  for (std::size_t i = 0; i < points.size(); i += every) {
    const auto& [x, y] = points[i];
    if (!plot.x.shows(x) || !plot.y.shows(y)) continue;
    drawing.dot({plot.x(x), plot.y(y)}, series.dots ? 3 : 5, series.dots ? colour : "hover",
                fmt::format("{}: {} at {}", series.name, number_text(y), number_text(x)));
  }
}

}  // namespace

std::string to_html(const LineChart& chart) {
  std::vector<std::pair<std::string, std::string>> names;
  Drawing drawing(kChartWidth, kChartHeight, chart.what);
  const auto [x, y] = ranges(chart);
  const Plot plot = draw_axes(drawing, chart.x, chart.y, x, y);
  for (const Level& level : chart.levels) {
    drawing.path({{plot.x(plot.x.from()), plot.y(level.value)}, {plot.x(plot.x.to()), plot.y(level.value)}}, "level",
                 fmt::format("{}: {}", level.name, number_text(level.value)));
    names.emplace_back("line level", level.name);
  }
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const Series& one = chart.series[i];
    const std::string colour = colour_of(one.colour.value_or(i)) + (one.dash.empty() ? "" : " " + one.dash);
    draw_series(drawing, plot, one, colour);
    names.emplace_back("line " + colour, one.name);
  }
  return (names.size() > 1 ? legend(names) : "") + "<div class=\"scrolls\">" + drawing.to_svg() + "</div>\n";
}

Series cumulative(std::string name, std::vector<double> values) {
  std::ranges::sort(values);
  Series series{std::move(name), {}, true};
  const auto count = static_cast<double>(values.size());
  if (!values.empty()) series.points.push_back({values.front(), 0});
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i + 1 < values.size() && values[i + 1] == values[i]) continue;
    series.points.push_back({values[i], static_cast<double>(i + 1) / count});
  }
  return series;
}

}  // namespace braid::report

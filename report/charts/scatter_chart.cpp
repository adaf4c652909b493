#include "report/charts/scatter_chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "report/markup.h"

namespace braid::report {

std::string to_html(const ScatterChart& chart) {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  const bool logarithmic = chart.x.logarithmic;
  for (const Mark& mark : chart.marks) {
    for (const double value : {mark.x, mark.y}) {
      if (!(value > 0)) continue;
      least = std::min(least, value);
      most = std::max(most, value);
    }
  }
  if (!(least <= most)) least = 0.5, most = 1;
  Drawing drawing(kChartWidth, 400, chart.what);
  // Both axes span the same values, so that the diagonal is one.
  const Scale both(chart.x, least, most, 0, 1, 5);
  const double from = both.from(), to = both.to();
  Axis across = chart.x, up = chart.y;
  across.from = up.from = from;
  across.to = up.to = to;
  const Plot plot = draw_axes(drawing, across, up, {from, to}, {from, to});
  std::vector<Point> strip, lower;
  constexpr int kPieces = 40;
  for (int i = 0; i <= kPieces; ++i) {
    const double share = static_cast<double>(i) / kPieces;
    const double at = logarithmic ? from * std::pow(to / from, share) : from + share * (to - from);
    strip.push_back({plot.x(at), plot.y(at * (1 + chart.band))});
    lower.push_back({plot.x(at), plot.y(at * (1 - chart.band))});
  }
  strip.insert(strip.end(), lower.rbegin(), lower.rend());
  drawing.area(strip, "band", fmt::format("within {:.0f} %", 100 * chart.band));
  drawing.line({plot.x(from), plot.y(from)}, {plot.x(to), plot.y(to)}, "diagonal");
  for (const Mark& mark : chart.marks) {
    if (!(mark.x > 0 && mark.y > 0)) continue;
    drawing.dot({plot.x(mark.x), plot.y(mark.y)}, 4.5, colour_of(mark.group),
                fmt::format("{}: {} {}, {} {}", mark.name, chart.y.label, number_text(mark.y), chart.x.label,
                            number_text(mark.x)));
  }
  std::vector<std::pair<std::string, std::string>> names;
  for (std::size_t i = 0; i < chart.groups.size(); ++i) names.emplace_back(colour_of(i), chart.groups[i]);
  names.emplace_back("bandbox", fmt::format("within {:.0f} %", 100 * chart.band));
  return legend(names) + "<div class=\"scrolls\">" + drawing.to_svg() + "</div>\n";
}

}  // namespace braid::report

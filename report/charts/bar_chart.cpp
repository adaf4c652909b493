#include "report/charts/bar_chart.h"

#include <algorithm>

#include <fmt/core.h>

#include "report/markup.h"

namespace braid::report {

std::string to_html(const BarChart& chart) {
  constexpr double kBar = 18, kPitch = 28, kTop = 6, kBottom = 44, kMostName = 300;
  double names = 40, texts = 30, most = 0;
  bool bounded = false;
  for (const Bar& bar : chart.bars) {
    names = std::max(names, text_width(bar.name) + 10);
    texts = std::max(texts, text_width(bar.text.empty() ? number_text(bar.value) : bar.text) + 14);
    most = std::max({most, bar.value + bar.half.value_or(0), bar.bound.value_or(0)});
    bounded |= bar.bound.has_value();
  }
  names = std::min(names, kMostName);
  const double height = kTop + kPitch * static_cast<double>(chart.bars.size()) + kBottom;
  Drawing drawing(kChartWidth, height, chart.what);
  Axis axis = chart.x;
  if (!axis.from) axis.from = 0;
  const double end = kChartWidth - texts;
  const Scale scale(axis, 0, most, names, end, static_cast<int>((end - names) / 80));
  const double bottom = height - kBottom;
  draw_ticks(drawing, scale, kTop, bottom);
  for (std::size_t i = 0; i < chart.bars.size(); ++i) {
    const Bar& bar = chart.bars[i];
    const double top = kTop + kPitch * static_cast<double>(i) + (kPitch - kBar) / 2, middle = top + kBar / 2;
    std::string told = fmt::format("{}: {}", bar.name, number_text(bar.value));
    if (bar.bound) told += fmt::format("; {}: {}", chart.bound_name, number_text(*bar.bound));
    if (bar.half) told += fmt::format(" ± {}", number_text(*bar.half));
    std::string name = bar.name;
    while (text_width(name) > names - 8 && name.size() > 4) name = name.substr(0, name.size() - 4) + "…";
    drawing.text({names - 8, middle + 4}, name, Drawing::Anchor::end);
    drawing.box({names, top}, scale(bar.value) - names, kBar, "c0", told);
    double behind = scale(bar.value);
    if (bar.half) {
      drawing.line({scale(bar.value - *bar.half), middle}, {scale(bar.value + *bar.half), middle}, "interval");
      behind = scale(bar.value + *bar.half);
    }
    if (bar.bound) {
      drawing.line({scale(*bar.bound), top - 3}, {scale(*bar.bound), top + kBar + 3}, "bound");
      behind = std::max(behind, scale(*bar.bound));
    }
    drawing.text({behind + 6, middle + 4}, bar.text.empty() ? number_text(bar.value) : bar.text);
  }
  drawing.line({names, kTop}, {names, bottom}, "axis");
  drawing.text({(names + end) / 2, height - 6}, chart.x.label, Drawing::Anchor::middle, "label");
  std::string html;
  if (bounded) html += legend({{"c0", chart.x.label}, {"boundbox", chart.bound_name}});
  return html + "<div class=\"scrolls\">" + drawing.to_svg() + "</div>\n";
}

}  // namespace braid::report

#include "report/charts/heat_map.h"

#include <algorithm>
#include <limits>

#include <fmt/core.h>

#include "report/markup.h"

namespace braid::report {

std::string to_html(const HeatMap& map) {
  constexpr double kRow = 30, kTop = 24, kBottom = 30;
  constexpr int kShades = 8;
  double names = 40;
  for (const std::string& row : map.rows) names = std::max(names, text_width(row) + 34);
  const double height = kTop + kRow * static_cast<double>(map.rows.size()) + kBottom;
  const double cell = (kChartWidth - names - 4) / static_cast<double>(std::max<std::size_t>(1, map.columns.size()));
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (const auto& row : map.values) {
    for (const std::optional<double>& value : row) {
      if (!value) continue;
      least = std::min(least, *value);
      most = std::max(most, *value);
    }
  }
  Drawing drawing(kChartWidth, height, map.what);
  for (std::size_t column = 0; column < map.columns.size(); ++column)
    drawing.text({names + cell * (static_cast<double>(column) + 0.5), kTop - 8}, map.columns[column],
                 Drawing::Anchor::middle, "tick");
  for (std::size_t row = 0; row < map.rows.size(); ++row) {
    const double top = kTop + kRow * static_cast<double>(row);
    drawing.text({names - 8, top + kRow / 2 + 4}, map.rows[row], Drawing::Anchor::end, "tick");
    for (std::size_t column = 0; column < map.columns.size(); ++column) {
      const std::optional<double>& value = map.values[row][column];
      const double left = names + cell * static_cast<double>(column);
      if (!value) continue;
      const double share = most > least ? (*value - least) / (most - least) : 0.5;
      drawing.box({left + 1, top + 1}, cell - 2, kRow - 2,
                  fmt::format("h{}", std::min(kShades - 1, static_cast<int>(share * kShades))),
                  fmt::format("{} {}, {} {}: {} {}", map.row_label, map.rows[row], map.column_label,
                              map.columns[column], map.value_label, number_text(*value)));
      drawing.text({left + cell / 2, top + kRow / 2 + 4}, number_text(*value), Drawing::Anchor::middle, "cell");
    }
  }
  drawing.text({names + (kChartWidth - names) / 2, height - 8}, map.column_label, Drawing::Anchor::middle, "label");
  drawing.upright_text({12, kTop + (height - kTop - kBottom) / 2}, map.row_label);
  return "<div class=\"scrolls\">" + drawing.to_svg() + "</div>\n";
}

}  // namespace braid::report

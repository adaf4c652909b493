#pragma once

#include "report/charts/drawing.h"

namespace braid::report {

struct HeatMap {
  std::string what;  ///< in a sentence
  std::string row_label, column_label, value_label;
  std::vector<std::string> rows, columns;
  std::vector<std::vector<std::optional<double>>> values;  ///< [row][column]
};

/// A field of numbers, the darker the larger.
std::string to_html(const HeatMap& map);

}  // namespace braid::report

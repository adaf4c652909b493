#pragma once

#include "report/charts/drawing.h"

namespace braid::report {

struct Bar {
  std::string name;
  double value = 0;
  std::optional<double> bound = {};  ///< drawn in as a line across the bar
  std::optional<double> half = {};   ///< of the interval around the value
  std::string text = {};             ///< beside it; left out: the value
};

struct BarChart {
  std::string what;  ///< in a sentence
  Axis x;            ///< bars begin at 0
  std::vector<Bar> bars;
  std::string bound_name = {};
};

/// Bars that lie, one below the other, each with its name before it and its value behind it.
std::string to_html(const BarChart& chart);

}  // namespace braid::report

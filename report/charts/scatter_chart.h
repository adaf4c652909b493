#pragma once

#include "report/charts/drawing.h"

namespace braid::report {

struct Mark {
  std::string name;
  double x = 0, y = 0;
  std::size_t group = 0;
};

/// Of two values of one quantity: equal ones lie on the diagonal, within `band` of one another in the shaded strip.
struct ScatterChart {
  std::string what;  ///< in a sentence
  Axis x, y;
  std::vector<Mark> marks;
  std::vector<std::string> groups = {};  ///< by number, their names
  double band = 0.1;
};

std::string to_html(const ScatterChart& chart);

}  // namespace braid::report

#pragma once

#include "report/charts/drawing.h"

namespace braid::report {

struct Series {
  std::string name;
  std::vector<Point> points;  ///< by ascending x; gaps where y is not finite
  bool steps = false;         ///< a value holds until the next point
  bool dots = false;          ///< each point is marked
  std::optional<std::size_t> colour = {};
  std::string dash = {};  ///< "solid" or "dashed", where the colour is not to say it
};

/// A value to hold the series against, drawn across.
struct Level {
  std::string name;
  double value = 0;
};

struct LineChart {
  std::string what;  ///< in a sentence
  Axis x, y;
  std::vector<Series> series;
  std::vector<Level> levels = {};
};

/// A legend and the picture. Of series of very many points the least and the most of each narrow stretch are drawn.
std::string to_html(const LineChart& chart);

/// The share of values that are at most x, as steps from 0 to 1.
Series cumulative(std::string name, std::vector<double> values);

}  // namespace braid::report

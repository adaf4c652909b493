#pragma once

#include "report/charts/drawing.h"

namespace braid::report {

/// What one stream of one rank did.
struct Lane {
  struct Work {
    double begin = 0, end = 0;
    std::string kind;  ///< a class of the page's style
    std::string text;  ///< where the pointer rests on it
  };
  std::string name;
  std::vector<Work> work;
  bool thin = false;  ///< a stream of messages
};

/// Lanes that belong together: what was predicted, what was measured.
struct LaneGroup {
  std::string name;
  std::vector<Lane> lanes;
};

struct PipelineChart {
  std::string what;  ///< in a sentence
  Axis x;            ///< time
  std::vector<LaneGroup> groups;
  std::vector<std::pair<std::string, std::string>> legend;  ///< kinds of work and their names
};

/// Groups below one another over the same time.
std::string to_html(const PipelineChart& chart);

}  // namespace braid::report

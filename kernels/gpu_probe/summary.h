#pragma once

#include <cstdint>
#include <vector>

namespace braid::gpu_probe {

/// What a profile entry says of its samples.
struct Summary {
  double seconds = 0;  ///< their median
  double spread = 0;   ///< interquartile range over the median
  std::int64_t count = 0;
};

/// There must be at least one sample.
Summary summarize(std::vector<double> samples);

}  // namespace braid::gpu_probe

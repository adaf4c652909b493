#pragma once

#include <string>
#include <vector>

#include "kernels/gpu_probe/shapes.h"
#include "kernels/gpu_probe/summary.h"

namespace braid::gpu_probe {

struct Measurement {
  Point point;
  Summary time;
};

/// What a GPU was found to do: a profile, as braid's cost model reads it.
struct MeasuredProfile {
  std::string machine;
  std::vector<std::string> versions;
  double peak_flops = 0;  ///< the best rate of any product measured
  std::int64_t memory_bytes = 0;
  std::string device;  ///< the cost model's name of the GPU, whose datasheet stands in for what was not measured; or ""
  std::vector<Measurement> measurements;
  std::string measured_at;  ///< UTC, as 2024-05-06T07:08:09Z
};

/// The profile as a JSON file of format 1, one entry a line. Every number comes back as it was; none may be infinite.
std::string to_json(const MeasuredProfile& profile);

}  // namespace braid::gpu_probe

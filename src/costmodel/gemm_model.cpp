#include "costmodel/gemm_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace braid::costmodel {
namespace {

constexpr std::array<double, 2> kSplits = {1, 2};

/// Things that overlap take about as long as the longest, a little more where two are alike: the fourth root of this.
double fourth(double x) {
  return x * x * x * x;
}

}  // namespace

double gemm_seconds(const Device& device, DataType type, const GemmCoefficients& coefficients, const GemmShape& shape) {
  if (shape.rows <= 0 || shape.in <= 0 || shape.out <= 0) return 0;
  const auto rows = static_cast<double>(shape.rows), in = static_cast<double>(shape.in);
  const auto out = static_cast<double>(shape.out), processors = static_cast<double>(device.multiprocessors);
  const auto number = static_cast<double>(bytes_of(type));
  const double bandwidth = device.memory_bandwidth * coefficients.bandwidth_efficiency;
  const double memory = shape.bytes(type) / bandwidth;
  const double memory_fourth = fourth(memory);
  const double rate = device.peak_flops(type) * coefficients.rate_efficiency / processors;
  const double cache_rate = device.memory_bandwidth * coefficients.cache_bandwidth;
  double best = std::numeric_limits<double>::infinity();
  for (const double split : kSplits) {
    double least = std::numeric_limits<double>::infinity();
    const double depth = in / split + coefficients.block_depth;
    for (const GemmTile& tile : kGemmTiles) {
      const auto tile_rows = static_cast<double>(tile.rows), tile_columns = static_cast<double>(tile.columns);
      const double blocks = std::ceil(rows / tile_rows) * std::ceil(out / tile_columns) * split;
      const double full = blocks / processors;
      const double waves =
          coefficients.wave_rounding * std::ceil(full) + (1 - coefficients.wave_rounding) * std::max(full, 1.0);
      const double edges = 1 + coefficients.edge_cost * (1 / tile_rows + 1 / tile_columns);
      const double compute = waves * (2 * tile_rows * tile_columns * depth * edges / rate + coefficients.block_seconds);
      const double cache = blocks * (tile_rows + tile_columns) * (in / split) * number / cache_rate;
      least = std::min(least, fourth(compute) + memory_fourth + fourth(cache));
    }
    double seconds = std::sqrt(std::sqrt(least));
    constexpr double kPartial = 4;  // bytes of a partial sum
    if (split > 1) seconds += coefficients.split_cost * split * rows * out * kPartial / bandwidth;
    best = std::min(best, seconds);
  }
  const double roofline =
      std::max(shape.flops() / device.peak_flops(type), shape.bytes(type) / device.memory_bandwidth);
  return std::max(best + coefficients.launch_seconds, roofline);
}

}  // namespace braid::costmodel

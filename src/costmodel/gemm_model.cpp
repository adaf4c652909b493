#include "costmodel/gemm_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace braid::costmodel {
namespace {

constexpr std::array<double, 2> kSplits = {1, 2};

/// Things that overlap take about as long as the longest, a little more where two are alike.
double overlapped(double a, double b, double c) {
  const auto fourth = [](double x) { return x * x * x * x; };
  return std::sqrt(std::sqrt(fourth(a) + fourth(b) + fourth(c)));
}

}  // namespace

double gemm_seconds(const Device& device, DataType type, const GemmCoefficients& coefficients, const GemmShape& shape) {
  if (shape.rows <= 0 || shape.in <= 0 || shape.out <= 0) return 0;
  const auto rows = static_cast<double>(shape.rows), in = static_cast<double>(shape.in);
  const auto out = static_cast<double>(shape.out), processors = static_cast<double>(device.multiprocessors);
  const auto number = static_cast<double>(bytes_of(type));
  const double bandwidth = device.memory_bandwidth * coefficients.bandwidth_efficiency;
  const double memory = shape.bytes(type) / bandwidth;
  double best = std::numeric_limits<double>::infinity();
  const double rate = device.peak_flops(type) * coefficients.rate_efficiency / processors;
  for (const GemmTile& tile : kGemmTiles) {
    const auto tile_rows = static_cast<double>(tile.rows), tile_columns = static_cast<double>(tile.columns);
    const double tiles = std::ceil(rows / tile_rows) * std::ceil(out / tile_columns);
    for (const double split : kSplits) {
      const double blocks = tiles * split;
      const double full = blocks / processors;
      const double waves =
          coefficients.wave_rounding * std::ceil(full) + (1 - coefficients.wave_rounding) * std::max(full, 1.0);
      const double depth = in / split + coefficients.block_depth;
      const double edges = 1 + coefficients.edge_cost * (1 / tile_rows + 1 / tile_columns);
      const double compute = waves * (2 * tile_rows * tile_columns * depth * edges / rate + coefficients.block_seconds);
      const double cache = blocks * (tile_rows + tile_columns) * (in / split) * number /
                           (device.memory_bandwidth * coefficients.cache_bandwidth);
      double seconds = overlapped(compute, memory, cache);
      constexpr double kPartial = 4;  // bytes of a partial sum
      if (split > 1) seconds += coefficients.split_cost * split * rows * out * kPartial / bandwidth;
      best = std::min(best, seconds);
    }
  }
  const double roofline =
      std::max(shape.flops() / device.peak_flops(type), shape.bytes(type) / device.memory_bandwidth);
  return std::max(best + coefficients.launch_seconds, roofline);
}

}  // namespace braid::costmodel

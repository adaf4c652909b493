#include "costmodel/gpu/gemm_model.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace braid::costmodel {
namespace {

/// Things that overlap take about as long as the longest, a little more where two are alike: the fourth root of the sum
/// of this.
double fourth(double x) {
  return x * x * x * x;
}

double root(double x) {
  return std::sqrt(std::sqrt(x));
}

/// Fused, as all sums of products here are by name: the compiler is told to fuse none by itself.
double plus_fourth(double sum, double x) {
  return std::fma(x * x * x, x, sum);
}

}  // namespace

GemmModel::GemmModel(const Device& device, DataType type, const GemmCoefficients& coefficients)
    : coefficients_(coefficients), type_(type) {
  peak_seconds_ = 1 / device.peak_flops(type);
  byte_seconds_ = 1 / device.memory_bandwidth;
  effective_byte_seconds_ = byte_seconds_ / coefficients.bandwidth_efficiency;
  cached_number_seconds_ = static_cast<double>(bytes_of(type)) * byte_seconds_ / coefficients.cache_bandwidth;
  per_processor_ = 1 / static_cast<double>(device.multiprocessors);
  const double multiply_add =
      2 * peak_seconds_ * static_cast<double>(device.multiprocessors) / coefficients.rate_efficiency;
  for (std::size_t way = 0; way < kWays; ++way) {
    const GemmTile tile = kGemmTiles[way % kGemmTiles.size()];
    const auto rows = static_cast<double>(tile.rows), columns = static_cast<double>(tile.columns);
    ways_.by_rows[way] = 1 / rows;
    ways_.by_columns[way] = 1 / columns;
    ways_.edge[way] = rows + columns;
    const double edges = std::fma(coefficients.edge_cost, ways_.by_rows[way] + ways_.by_columns[way], 1.0);
    ways_.step_seconds[way] = rows * columns * edges * multiply_add;
    ways_.parts[way] = static_cast<double>(1 + way / kGemmTiles.size());
    ways_.share[way] = 1 / ways_.parts[way];
  }
}

double GemmModel::seconds(const GemmShape& shape) const {
  if (shape.rows <= 0 || shape.in <= 0 || shape.out <= 0) return 0;
  const auto rows = static_cast<double>(shape.rows), in = static_cast<double>(shape.in),
             out = static_cast<double>(shape.out);
  const double bytes = shape.bytes(type_);
  const double memory = fourth(bytes * effective_byte_seconds_);
  // Sizes of tiles and parts of K are powers of two: their inverses are exact.
  double fourths[kWays];
  for (std::size_t way = 0; way < kWays; ++way) {
    const double depth = in * ways_.share[way];
    const double blocks =
        std::ceil(rows * ways_.by_rows[way]) * std::ceil(out * ways_.by_columns[way]) * ways_.parts[way];
    const double full = blocks * per_processor_;
    const double waves =
        coefficients_.wave_rounding * std::ceil(full) + (1 - coefficients_.wave_rounding) * std::max(full, 1.0);
    const double block =
        std::fma(ways_.step_seconds[way], depth + coefficients_.block_depth, coefficients_.block_seconds);
    const double cache = blocks * ways_.edge[way] * depth * cached_number_seconds_;
    fourths[way] = plus_fourth(plus_fourth(memory, waves * block), cache);
  }
  const double* const halves = fourths + kGemmTiles.size();
  const double in_one = root(*std::min_element(fourths, fourths + kGemmTiles.size()));
  const double in_halves = root(*std::min_element(halves, halves + kGemmTiles.size()));
  // In halves partial sums are written and read.
  constexpr double kPartial = 4;
  const double partial = coefficients_.split_cost * kSplits * kPartial * effective_byte_seconds_ * rows * out;
  const double best = std::min(in_one, in_halves + partial);
  return std::max({best + coefficients_.launch_seconds, shape.flops() * peak_seconds_, bytes * byte_seconds_});
}

double gemm_seconds(const Device& device, DataType type, const GemmCoefficients& coefficients, const GemmShape& shape) {
  return GemmModel(device, type, coefficients).seconds(shape);
}

}  // namespace braid::costmodel

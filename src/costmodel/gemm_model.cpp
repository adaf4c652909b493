#include "costmodel/gemm_model.h"

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
  for (std::size_t t = 0; t < kGemmTiles.size(); ++t) {
    tiles_.rows[t] = static_cast<double>(kGemmTiles[t].rows);
    tiles_.columns[t] = static_cast<double>(kGemmTiles[t].columns);
    tiles_.by_rows[t] = 1 / tiles_.rows[t];
    tiles_.by_columns[t] = 1 / tiles_.columns[t];
    const double edges = std::fma(coefficients.edge_cost, tiles_.by_rows[t] + tiles_.by_columns[t], 1.0);
    tiles_.step_seconds[t] = tiles_.rows[t] * tiles_.columns[t] * edges * multiply_add;
  }
}

/// Of the best tile with K in `split` parts: the fourth power of its time.
double GemmModel::least_fourth(const GemmShape& shape, double split, double memory) const {
  const auto rows = static_cast<double>(shape.rows), out = static_cast<double>(shape.out);
  const double depth = static_cast<double>(shape.in) / split;
  double fourths[kGemmTiles.size()];
  for (std::size_t t = 0; t < kGemmTiles.size(); ++t) {
    // Sizes of tiles are powers of two: their inverses are exact.
    const double blocks = std::ceil(rows * tiles_.by_rows[t]) * std::ceil(out * tiles_.by_columns[t]) * split;
    const double full = blocks * per_processor_;
    const double waves =
        coefficients_.wave_rounding * std::ceil(full) + (1 - coefficients_.wave_rounding) * std::max(full, 1.0);
    const double block =
        std::fma(tiles_.step_seconds[t], depth + coefficients_.block_depth, coefficients_.block_seconds);
    const double cache = blocks * (tiles_.rows[t] + tiles_.columns[t]) * depth * cached_number_seconds_;
    fourths[t] = plus_fourth(plus_fourth(memory, waves * block), cache);
  }
  return *std::min_element(std::begin(fourths), std::end(fourths));
}

double GemmModel::seconds(const GemmShape& shape) const {
  if (shape.rows <= 0 || shape.in <= 0 || shape.out <= 0) return 0;
  const double bytes = shape.bytes(type_);
  const double memory = fourth(bytes * effective_byte_seconds_);
  double best = std::sqrt(std::sqrt(least_fourth(shape, 1, memory)));
  // In halves, whose partial sums are written and read.
  constexpr double kHalves = 2, kPartial = 4;
  const double partial = coefficients_.split_cost * kHalves * kPartial * effective_byte_seconds_ *
                         static_cast<double>(shape.rows) * static_cast<double>(shape.out);
  // Only what may be worth it is tried, and only a root that is worth taking is taken: traffic is the same in halves.
  const double worth = partial < best ? fourth(best - partial) : 0;
  if (memory < worth) {
    const double halves = least_fourth(shape, kHalves, memory);
    if (halves < worth) best = std::sqrt(std::sqrt(halves)) + partial;
  }
  return std::max({best + coefficients_.launch_seconds, shape.flops() * peak_seconds_, bytes * byte_seconds_});
}

double gemm_seconds(const Device& device, DataType type, const GemmCoefficients& coefficients, const GemmShape& shape) {
  return GemmModel(device, type, coefficients).seconds(shape);
}

}  // namespace braid::costmodel

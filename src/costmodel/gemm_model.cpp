#include "costmodel/gemm_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace braid::costmodel {
namespace {

/// Things that overlap take about as long as the longest, a little more where two are alike: the fourth root of the sum
/// of this.
double fourth(double x) {
  return x * x * x * x;
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
  for (std::size_t i = 0; i < tiles_.size(); ++i) {
    Tile& tile = tiles_[i];
    tile.rows = static_cast<double>(kGemmTiles[i].rows);
    tile.columns = static_cast<double>(kGemmTiles[i].columns);
    tile.by_rows = 1 / tile.rows;
    tile.by_columns = 1 / tile.columns;
    const double edges = 1 + coefficients.edge_cost * (tile.by_rows + tile.by_columns);
    tile.step_seconds = tile.rows * tile.columns * edges * multiply_add;
  }
}

/// Of the best tile with K in `split` parts: the fourth power of its time.
double GemmModel::least_fourth(const GemmShape& shape, double split, double memory) const {
  const auto rows = static_cast<double>(shape.rows), out = static_cast<double>(shape.out);
  const double depth = static_cast<double>(shape.in) / split;
  double least = std::numeric_limits<double>::infinity();
  for (const Tile& tile : tiles_) {
    // Sizes of tiles are powers of two: their inverses are exact.
    const double blocks = std::ceil(rows * tile.by_rows) * std::ceil(out * tile.by_columns) * split;
    const double full = blocks * per_processor_;
    const double waves =
        coefficients_.wave_rounding * std::ceil(full) + (1 - coefficients_.wave_rounding) * std::max(full, 1.0);
    const double block = tile.step_seconds * (depth + coefficients_.block_depth) + coefficients_.block_seconds;
    const double cache = blocks * (tile.rows + tile.columns) * depth * cached_number_seconds_;
    least = std::min(least, fourth(waves * block) + memory + fourth(cache));
  }
  return least;
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
  if (partial < best) {
    // Only a root that is worth taking is taken.
    const double halves = least_fourth(shape, kHalves, memory);
    if (halves < fourth(best - partial)) best = std::sqrt(std::sqrt(halves)) + partial;
  }
  return std::max({best + coefficients_.launch_seconds, shape.flops() * peak_seconds_, bytes * byte_seconds_});
}

double gemm_seconds(const Device& device, DataType type, const GemmCoefficients& coefficients, const GemmShape& shape) {
  return GemmModel(device, type, coefficients).seconds(shape);
}

}  // namespace braid::costmodel

#include "costmodel/gemm_traffic.h"

#include <algorithm>
#include <limits>

namespace braid::costmodel {
namespace {

constexpr std::int64_t waves(std::int64_t tiles, std::int64_t a_wave) {
  return (tiles + a_wave - 1) / a_wave;
}

}  // namespace

double memory_traffic(const Device& device, DataType type, const GemmShape& shape) {
  if (shape.rows <= 0 || shape.in <= 0 || shape.out <= 0) return 0;
  const double once = shape.bytes(type);
  const double number = static_cast<double>(bytes_of(type));
  const double x = number * static_cast<double>(shape.rows) * static_cast<double>(shape.in);
  const double w = number * static_cast<double>(shape.in) * static_cast<double>(shape.out);
  if (std::min(x, w) <= static_cast<double>(device.l2_bytes) / 2) return once;
  const double y = once - x - w;
  const std::int64_t blocks = device.multiprocessors;
  double least = std::numeric_limits<double>::infinity();
  for (const GemmTile& tile : kGemmTiles) {
    const std::int64_t rows = waves(shape.rows, tile.rows), columns = waves(shape.out, tile.columns);
    for (std::int64_t high = 1; high <= std::min(rows, blocks); ++high) {
      const double x_reads = static_cast<double>(waves(columns, blocks / high));
      const double w_reads = static_cast<double>(waves(rows, high));
      least = std::min(least, y + x * x_reads + w * w_reads);
    }
  }
  return least;
}

}  // namespace braid::costmodel

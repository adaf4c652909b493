#include "studies/costmodel/gemm_traffic.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/error.h"

namespace braid::costmodel::studies {
namespace {

constexpr std::int64_t tiles(std::int64_t whole, std::int64_t tile) {
  return (whole + tile - 1) / tile;
}

double bytes(DataType type, std::int64_t rows, std::int64_t columns) {
  return static_cast<double>(bytes_of(type)) * static_cast<double>(rows) * static_cast<double>(columns);
}

bool is_empty(const GemmShape& shape) {
  return shape.rows <= 0 || shape.in <= 0 || shape.out <= 0;
}

/// What the best rectangles of so many blocks read.
double least_read(const GemmShape& shape, std::int64_t tile_rows, std::int64_t tile_columns, std::int64_t blocks,
                  double x, double w) {
  const std::int64_t rows = tiles(shape.rows, tile_rows), columns = tiles(shape.out, tile_columns);
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t high = 1; high <= std::min(rows, blocks); ++high) {
    const std::int64_t times_x = tiles(columns, blocks / high), times_w = tiles(rows, high);
    least = std::min(least, static_cast<double>(times_x) * x + static_cast<double>(times_w) * w);
  }
  return least;
}

}  // namespace

double memory_traffic(const Device& device, DataType type, const GemmShape& shape) {
  if (is_empty(shape)) return 0;
  BRAID_CHECK(device.multiprocessors > 0, "{} without multiprocessors", device.name);
  const double x = bytes(type, shape.rows, shape.in), w = bytes(type, shape.in, shape.out);
  const double y = bytes(type, shape.rows, shape.out);
  if (std::min(x, w) <= static_cast<double>(device.l2_bytes) / 2) return x + w + y;
  double least = std::numeric_limits<double>::infinity();
  for (const GemmTile& tile : kGemmTiles) {
    least = std::min({least, least_read(shape, tile.rows, tile.columns, device.multiprocessors, x, w),
                      least_read(shape, tile.columns, tile.rows, device.multiprocessors, x, w)});
  }
  return least + y;
}

double grouped_memory_traffic(const Device& device, DataType type, const GemmShape& shape, const GemmTile& tile,
                              std::int64_t group) {
  if (is_empty(shape)) return 0;
  BRAID_CHECK(device.multiprocessors > 0, "{} without multiprocessors", device.name);
  BRAID_CHECK(group > 0, "groups of {} rows of tiles", group);
  const std::int64_t rows = tiles(shape.rows, tile.rows), columns = tiles(shape.out, tile.columns);
  double sum = bytes(type, shape.rows, shape.out);
  for (std::int64_t first = 0; first < rows * columns; first += device.multiprocessors) {
    std::set<std::int64_t> wave_rows, wave_columns;
    for (std::int64_t block = first; block < std::min(first + device.multiprocessors, rows * columns); ++block) {
      const std::int64_t top = block / (group * columns) * group, high = std::min(group, rows - top);
      wave_rows.insert(top + block % high);
      wave_columns.insert(block % (group * columns) / high);
    }
    for (const std::int64_t row : wave_rows)
      sum += bytes(type, std::min(tile.rows, shape.rows - row * tile.rows), shape.in);
    for (const std::int64_t column : wave_columns)
      sum += bytes(type, shape.in, std::min(tile.columns, shape.out - column * tile.columns));
  }
  return sum;
}

}  // namespace braid::costmodel::studies

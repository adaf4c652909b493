#include "costmodel/gemm_traffic.h"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace braid::costmodel {
namespace {

/// What the waves of one order read: rectangle after rectangle of tiles, each the rows of X and the columns of W that
/// it covers, tile by tile.
double bytes_read(const GemmShape& shape, const GemmTile& tile, std::int64_t high, std::int64_t wide) {
  double numbers = 0;
  for (std::int64_t row = 0; row < shape.rows; row += high * tile.rows) {
    for (std::int64_t column = 0; column < shape.out; column += wide * tile.columns) {
      for (std::int64_t i = row; i < std::min(row + high * tile.rows, shape.rows); ++i)
        numbers += static_cast<double>(shape.in);
      for (std::int64_t i = column; i < std::min(column + wide * tile.columns, shape.out); ++i)
        numbers += static_cast<double>(shape.in);
    }
  }
  return 2 * numbers;
}

double exhaustive(const Device& device, const GemmShape& shape) {
  double least = std::numeric_limits<double>::infinity();
  for (const GemmTile& tile : kGemmTiles) {
    for (std::int64_t high = 1; high <= device.multiprocessors; ++high) {
      for (std::int64_t wide = 1; high * wide <= device.multiprocessors; ++wide)
        least = std::min(least, bytes_read(shape, tile, high, wide));
    }
  }
  return least + 2 * static_cast<double>(shape.rows * shape.out);
}

TEST(GemmTraffic, IsTheLeastOverTilesAndRectanglesOfAWave) {
  Device device = device_of("h100");
  device.l2_bytes = 0;
  device.multiprocessors = 12;
  for (const GemmShape shape : {GemmShape{64, 32, 64}, {1000, 64, 1500}, {2048, 16, 300}, {130, 8, 4000}})
    EXPECT_DOUBLE_EQ(memory_traffic(device, DataType::bf16, shape), exhaustive(device, shape)) << shape.rows;
  EXPECT_GT(memory_traffic(device, DataType::bf16, {8192, 64, 8192}),
            (GemmShape{8192, 64, 8192}).bytes(DataType::bf16));
}

RC_GTEST_PROP(GemmTraffic, ReadsEachOperandOnceAtLeastAndJustThatWhereOneStays, ()) {
  const std::vector<std::string> names = device_names();
  const Device& device = device_of(*rc::gen::elementOf(names));
  const GemmShape shape{*rc::gen::inRange(1, 9000), *rc::gen::inRange(1, 30000), *rc::gen::inRange(1, 60000)};
  for (const DataType type : {DataType::bf16, DataType::f32}) {
    const double once = shape.bytes(type), traffic = memory_traffic(device, type, shape);
    RC_ASSERT(traffic >= once);
    const double smaller = static_cast<double>(std::min(shape.rows, shape.out) * shape.in * bytes_of(type));
    if (smaller <= static_cast<double>(device.l2_bytes) / 2) RC_ASSERT(traffic == once);
  }
}

TEST(GemmTraffic, NothingMovesNothing) {
  EXPECT_EQ(memory_traffic(device_of("a40"), DataType::bf16, {0, 4096, 4096}), 0);
}

}  // namespace
}  // namespace braid::costmodel

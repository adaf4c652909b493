#include "studies/costmodel/gemm_traffic.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace braid::costmodel::studies {
namespace {

Device small_gpu(std::int64_t multiprocessors) {
  Device device = device_of("h100");
  device.l2_bytes = 0;
  device.multiprocessors = multiprocessors;
  return device;
}

/// What the waves of one order read: rectangle after rectangle, each the rows of X and the columns of W that it covers.
double bytes_read(const GemmShape& shape, std::int64_t high, std::int64_t wide) {
  double numbers = 0;
  for (std::int64_t row = 0; row < shape.rows; row += high) {
    for (std::int64_t column = 0; column < shape.out; column += wide) {
      numbers += static_cast<double>((std::min(row + high, shape.rows) - row) * shape.in);
      numbers += static_cast<double>((std::min(column + wide, shape.out) - column) * shape.in);
    }
  }
  return 2 * numbers;
}

double exhaustive(const Device& device, const GemmShape& shape) {
  double least = std::numeric_limits<double>::infinity();
  for (const GemmTile& tile : kGemmTiles) {
    for (std::int64_t high = 1; high <= device.multiprocessors; ++high) {
      for (std::int64_t wide = 1; high * wide <= device.multiprocessors; ++wide) {
        least = std::min({least, bytes_read(shape, high * tile.rows, wide * tile.columns),
                          bytes_read(shape, high * tile.columns, wide * tile.rows)});
      }
    }
  }
  return least + 2 * static_cast<double>(shape.rows * shape.out);
}

TEST(GemmTraffic, IsTheLeastOverTilesAndRectanglesOfAWave) {
  const Device device = small_gpu(12);
  for (const GemmShape shape : {GemmShape{64, 32, 64}, {1000, 64, 1500}, {2048, 16, 300}, {130, 8, 4000}}) {
    EXPECT_DOUBLE_EQ(memory_traffic(device, DataType::bf16, shape), exhaustive(device, shape)) << shape.rows;
    EXPECT_DOUBLE_EQ(memory_traffic(device, DataType::f32, shape), 2 * exhaustive(device, shape)) << shape.rows;
  }
}

TEST(GemmTraffic, OfALargeProductOnAnH100IsByHand) {
  // X of 67.1 MB, W of 33.6, Y of 67.1. Tiles of 128 x 256 make 64 x 16 of them; rectangles of 8 x 16 cover all
  // columns, so that X is read once and W, of which the cache has room for 25 MB, eight times; of 16 x 8: twice and
  // four times, which is as much.
  constexpr double kX = 2.0 * 8192 * 4096, kW = 2.0 * 4096 * 4096;
  EXPECT_DOUBLE_EQ(memory_traffic(device_of("h100"), DataType::bf16, {8192, 4096, 4096}), 2 * kX + 4 * kW + kX);
  // With columns for 24 MB of W it stays.
  EXPECT_DOUBLE_EQ(memory_traffic(device_of("h100"), DataType::bf16, {8192, 4096, 2944}),
                   (GemmShape{8192, 4096, 2944}.bytes(DataType::bf16)));
}

RC_GTEST_PROP(GemmTraffic, ReadsEachOperandOnceAtLeastAndJustThatWhereOneStays, ()) {
  const std::vector<std::string> names = device_names();
  const Device& device = device_of(*rc::gen::elementOf(names));
  const GemmShape shape{*rc::gen::inRange(1, 9000), *rc::gen::inRange(1, 30000), *rc::gen::inRange(1, 60000)};
  for (const DataType type : {DataType::bf16, DataType::f32}) {
    const double once = shape.bytes(type), traffic = memory_traffic(device, type, shape);
    RC_ASSERT(traffic >= once);
    RC_ASSERT(traffic == memory_traffic(device, type, {shape.out, shape.in, shape.rows}));
    const double smaller = static_cast<double>(std::min(shape.rows, shape.out) * shape.in * bytes_of(type));
    if (smaller <= static_cast<double>(device.l2_bytes) / 2) RC_ASSERT(traffic == once);
  }
}

TEST(GemmTraffic, OneGroupOfAllRowsGoesColumnByColumn) {
  // Tiles of 64 x 64: 4 rows, 6 columns. Waves of 8 blocks are two columns, so that X is read three times, W once.
  const Device device = small_gpu(8);
  const GemmShape shape{256, 10, 384};
  const double x = 2.0 * 256 * 10, w = 2.0 * 10 * 384, y = 2.0 * 256 * 384;
  EXPECT_DOUBLE_EQ(grouped_memory_traffic(device, DataType::bf16, shape, {64, 64}, 4), 3 * x + w + y);
  // Row by row: each wave is one, and reads all of W.
  EXPECT_DOUBLE_EQ(grouped_memory_traffic(small_gpu(6), DataType::bf16, shape, {64, 64}, 1), x + 4 * w + y);
}

RC_GTEST_PROP(GemmTraffic, AGroupedOrderReadsAllOnceAtLeastAndNoMoreThanEachBlocksOwn, ()) {
  const Device device = small_gpu(*rc::gen::element<std::int64_t>(12, 108, 132));
  const GemmShape shape{*rc::gen::inRange(1, 9000), *rc::gen::inRange(1, 300), *rc::gen::inRange(1, 9000)};
  const GemmTile tile = *rc::gen::elementOf(kGemmTiles);
  const auto group = *rc::gen::inRange<std::int64_t>(1, 20);
  const double grouped = grouped_memory_traffic(device, DataType::bf16, shape, tile, group);
  RC_ASSERT(grouped >= shape.bytes(DataType::bf16));
  // No more than if every block read its own.
  const auto blocks =
      static_cast<double>((shape.rows + tile.rows - 1) / tile.rows * ((shape.out + tile.columns - 1) / tile.columns));
  RC_ASSERT(grouped <= 2 * static_cast<double>(shape.rows * shape.out) +
                           2 * blocks * static_cast<double>((tile.rows + tile.columns) * shape.in));
}

TEST(GemmTraffic, NothingMovesNothing) {
  EXPECT_EQ(memory_traffic(device_of("a40"), DataType::bf16, {0, 4096, 4096}), 0);
  EXPECT_EQ(grouped_memory_traffic(device_of("a40"), DataType::bf16, {0, 4096, 4096}, {64, 64}, 8), 0);
}

}  // namespace
}  // namespace braid::costmodel::studies

#include "kernels/cpu/lanes.h"

#include "testing.h"

namespace braid::kernels::cpu {
namespace {

TEST(Exponential, IsWithinTwoUnitsInTheLastPlace) {
  for (int step = 0; step < 50000; ++step) {
    const float x = -87.3F + 0.00352F * static_cast<float>(step);
    const double expected = std::exp(static_cast<double>(x));
    const auto rounded = static_cast<float>(expected);
    const double unit = static_cast<double>(std::nextafter(rounded, INFINITY)) - rounded;
    EXPECT_NEAR(exponential(broadcast(x))[0], expected, 2.0 * unit) << x;
  }
}

TEST(Exponential, EndsInZeroAndInfinityAndKeepsNaN) {
  EXPECT_EQ(exponential(broadcast(0.0F))[0], 1.0F);
  for (const float x : {-88.0F, -1e30F, -INFINITY}) EXPECT_EQ(exponential(broadcast(x))[0], 0.0F) << x;
  for (const float x : {89.0F, 1e30F, INFINITY}) EXPECT_EQ(exponential(broadcast(x))[0], INFINITY) << x;
  EXPECT_TRUE(std::isnan(exponential(broadcast(std::nanf("")))[0]));
}

TEST(Lanes, SumAndGreatestTakeEveryLane) {
  for (std::int64_t lane = 0; lane < kLanes; ++lane) {
    Lanes x = broadcast(-1.0F);
    x[lane] = 5.0F;
    EXPECT_EQ(sum(x), 5.0F - static_cast<float>(kLanes - 1));
    EXPECT_EQ(greatest(x), 5.0F);
  }
}

TEST(Lanes, PartialLoadsAndStoresTouchNothingMore) {
  std::vector<float> from(static_cast<std::size_t>(kLanes), 2.0F);
  for (std::int64_t count = 1; count <= kLanes; ++count) {
    std::vector<float> to(static_cast<std::size_t>(kLanes), 7.0F);
    store(to.data(), load(from.data() + kLanes - count, count, 3.0F) + 1.0F, count);
    for (std::int64_t i = 0; i < kLanes; ++i) {
      EXPECT_EQ(to[static_cast<std::size_t>(i)], i < count ? 3.0F : 7.0F);
      EXPECT_EQ(load(from.data() + kLanes - count, count, 3.0F)[i], i < count ? 2.0F : 3.0F);
    }
  }
}

TEST(Lanes, TransposeSwapsRowsAndLanes) {
  Lanes square[kLanes];
  for (std::int64_t row = 0; row < kLanes; ++row) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) square[row][lane] = static_cast<float>(100 * row + lane);
  }
  transpose(square);
  for (std::int64_t row = 0; row < kLanes; ++row) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane)
      EXPECT_EQ(square[row][lane], static_cast<float>(100 * lane + row));
  }
}

}  // namespace
}  // namespace braid::kernels::cpu

#include "workload/lengths.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

namespace braid::workload {
namespace {

using Kind = LengthDistribution::Kind;

double mean_of(const std::vector<std::int64_t>& lengths) {
  return static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0})) /
         static_cast<double>(lengths.size());
}

TEST(Lengths, LognormalHasItsMeanAndSigma) {
  const auto lengths = draw_lengths({Kind::lognormal, 500, 0.4, 2, 1'000'000, 200'000}, 1);
  ASSERT_EQ(lengths.size(), 200'000u);
  // Standard error of the mean: 500 sqrt(exp(0.16) - 1) / sqrt(200000) = 0.47.
  EXPECT_NEAR(mean_of(lengths), 500, 2.5);
  double sum = 0, squares = 0;
  for (const std::int64_t length : lengths) {
    const double logarithm = std::log(static_cast<double>(length));
    sum += logarithm;
    squares += logarithm * logarithm;
  }
  const double average = sum / 200'000;
  EXPECT_NEAR(std::sqrt(squares / 200'000 - average * average), 0.4, 0.004);
}

TEST(Lengths, UniformCoversItsRangeEvenly) {
  const auto lengths = draw_lengths({Kind::uniform, 0, 0, 10, 19, 100'000}, 2);
  std::vector<int> counts(10);
  for (const std::int64_t length : lengths) {
    ASSERT_GE(length, 10);
    ASSERT_LE(length, 19);
    ++counts[static_cast<std::size_t>(length - 10)];
  }
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 500);
}

TEST(Lengths, ConstantIsConstant) {
  EXPECT_EQ(draw_lengths({Kind::constant, 64, 0, 2, 128, 3}, 3), (std::vector<std::int64_t>{64, 64, 64}));
}

TEST(Lengths, AreCutToTheirRange) {
  const auto lengths = draw_lengths({Kind::lognormal, 100, 3.0, 50, 150, 10'000}, 4);
  EXPECT_EQ(*std::min_element(lengths.begin(), lengths.end()), 50);
  EXPECT_EQ(*std::max_element(lengths.begin(), lengths.end()), 150);
}

TEST(Lengths, OfASkewnessHaveIt) {
  for (const double skewness : {0.3, 1.0, 2.5}) {
    const LengthDistribution wide{Kind::lognormal, 20'000, sigma_of_skewness(skewness), 2, 1 << 30, 400'000};
    double mean = 0, second = 0, third = 0;
    const auto lengths = draw_lengths(wide, 6);
    for (const std::int64_t length : lengths) mean += static_cast<double>(length) / static_cast<double>(wide.samples);
    for (const std::int64_t length : lengths) {
      const double off = static_cast<double>(length) - mean;
      second += off * off / static_cast<double>(wide.samples);
      third += off * off * off / static_cast<double>(wide.samples);
    }
    EXPECT_NEAR(third / std::pow(second, 1.5), skewness, 0.06 * skewness);
    EXPECT_NEAR(mean, wide.mean, 0.01 * wide.mean);
  }
}

TEST(Lengths, DependOnTheKeyAlone) {
  const LengthDistribution lengths{Kind::lognormal, 64, 0.4, 2, 128, 1000};
  EXPECT_EQ(draw_lengths(lengths, 5), draw_lengths(lengths, 5));
  EXPECT_NE(draw_lengths(lengths, 5), draw_lengths(lengths, 6));
}

}  // namespace
}  // namespace braid::workload

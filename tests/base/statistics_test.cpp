#include "base/statistics.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace braid {
namespace {

TEST(Statistics, MedianHasAsManySamplesBelowAsAbove) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({9, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 100}), 3);
  EXPECT_THROW(median({}), InternalError);
}

TEST(Statistics, QuantileIsASampleWithThatShareBelowIt) {
  const std::vector<double> samples = {50, 10, 40, 20, 30};
  EXPECT_EQ(quantile(samples, 0), 10);
  EXPECT_EQ(quantile(samples, 0.25), 20);
  EXPECT_EQ(quantile(samples, 0.5), 30);
  EXPECT_EQ(quantile(samples, 0.99), 40);
  EXPECT_EQ(quantile(samples, 1), 50);
  EXPECT_THROW(quantile(samples, 1.5), InternalError);
  EXPECT_THROW(quantile({}, 0.5), InternalError);
}

}  // namespace
}  // namespace braid

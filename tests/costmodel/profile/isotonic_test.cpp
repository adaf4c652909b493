#include "costmodel/profile/isotonic.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace braid::costmodel {
namespace {

double cost(const std::vector<double>& fitted, const std::vector<double>& values) {
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += std::pow(fitted[i] / values[i] - 1, 2);
  return sum;
}

/// The least over all ways to cut the sequence into level runs: every isotonic fit is one of them.
double least_cost(const std::vector<double>& values) {
  double least = 1e300;
  for (unsigned cuts = 0; cuts < 1U << (values.size() - 1); ++cuts) {
    std::vector<double> fitted;
    for (std::size_t first = 0; first < values.size();) {
      std::size_t last = first + 1;
      while (last < values.size() && !(cuts >> (last - 1) & 1U)) ++last;
      double weighted = 0, weights = 0;
      for (std::size_t i = first; i < last; ++i) weighted += 1 / values[i], weights += 1 / (values[i] * values[i]);
      fitted.insert(fitted.end(), last - first, weighted / weights);
      first = last;
    }
    if (std::is_sorted(fitted.begin(), fitted.end())) least = std::min(least, cost(fitted, values));
  }
  return least;
}

RC_GTEST_PROP(Isotonic, NeverFallsAndIsAsNearAsAnyOther, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 9);
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(0.01 * *rc::gen::inRange(1, 500));
  const std::vector<double> fitted = isotonic(values);
  RC_ASSERT(fitted.size() == count);
  RC_ASSERT(std::is_sorted(fitted.begin(), fitted.end()));
  RC_ASSERT(cost(fitted, values) <= least_cost(values) * (1 + 1e-9) + 1e-12);
}

TEST(Isotonic, LeavesWhatNeverFallsAlone) {
  const std::vector<double> values = {0, 1e-6, 1e-6, 3e-6};
  EXPECT_EQ(isotonic(values), values);
  EXPECT_TRUE(isotonic({}).empty());
}

}  // namespace
}  // namespace braid::costmodel

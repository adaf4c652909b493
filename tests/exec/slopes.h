#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace braid::exec {

/// The slopes of `loss` at `parameters`, along random directions so that every number takes part and rounding does not
/// drown them, are those that `gradient` says, to a fiftieth and `floor`. `parameters` are what they were afterwards.
inline void expect_slopes(std::span<float> parameters, const std::vector<float>& gradient,
                          const std::function<double()>& loss, double floor = 1e-4, const std::string& what = "") {
  RandomStream random(11);
  const std::vector<float> before(parameters.begin(), parameters.end());
  for (int trial = 0; trial < 4; ++trial) {
    std::vector<float> direction(parameters.size());
    double slope = 0;
    for (std::size_t i = 0; i < direction.size(); ++i) {
      direction[i] = static_cast<float>(random.next_normal());
      slope += static_cast<double>(direction[i]) * static_cast<double>(gradient[i]);
    }
    const auto loss_at = [&](float distance) {
      for (std::size_t i = 0; i < direction.size(); ++i) parameters[i] = before[i] + distance * direction[i];
      return loss();
    };
    constexpr float kStep = 2e-3F;
    const double measured = (loss_at(kStep) - loss_at(-kStep)) / (2 * static_cast<double>(kStep));
    std::ranges::copy(before, parameters.begin());
    EXPECT_NEAR(measured, slope, 0.02 * std::abs(slope) + floor) << what;
  }
}

}  // namespace braid::exec

#include "kernels/outer_sums.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "base/parallel.h"
#include "base/random.h"
#include "kernels/testing.h"

namespace braid::kernels {
namespace {

struct Sums {
  Sums(std::int64_t m, std::int64_t n) : high(static_cast<std::size_t>(m * n), 0), low(high), rows(m), columns(n) {}
  ExactSums view() { return {high.data(), low.data(), rows, columns, columns}; }
  bool operator==(const Sums&) const = default;

  std::vector<double> high, low;
  std::int64_t rows, columns;
};

/// Of magnitudes from 2^-20 to 2^9, as gradients and activations are, and worse.
std::vector<float> numbers(std::int64_t count, RandomStream& random) {
  std::vector<float> all;
  for (std::int64_t i = 0; i < count; ++i)
    all.push_back(static_cast<float>(random.next_normal() * std::exp2(30 * random.next_uniform() - 20)));
  return all;
}

/// Split and ordered anyhow, on any number of threads, the sums are the same to the bit, and near the exact ones.
TEST(OuterSums, DoNotDependOnTheOrderOfTheirTerms) {
  RandomStream random(3);
  for (const auto& [tokens, rows, columns] : {std::array{1, 1, 1}, {37, 3, 19}, {300, 5, 64}, {1000, 16, 33}}) {
    const std::vector<float> a = numbers(tokens * rows, random), b = numbers(tokens * columns, random);
    const ConstMatrix whole_a(a.data(), tokens, rows), whole_b(b.data(), tokens, columns);
    Sums expected(rows, columns);
    reference::outer_sums(0.37F, whole_a, whole_b, expected.view());
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        long double sum = 0;
        for (std::int64_t t = 0; t < tokens; ++t)
          sum += static_cast<long double>(0.37F * whole_a.row(t)[i]) * whole_b.row(t)[j];
        const auto at = static_cast<std::size_t>(i * columns + j);
        EXPECT_LE(std::abs(static_cast<double>(sum - expected.high[at] - expected.low[at])),
                  static_cast<double>(tokens) * 0x1p-57 + 1e-12 * std::abs(static_cast<double>(sum)) * 0x1p-10);
      }
    }
    for (int round = 0; round < 5; ++round) {
      std::vector<std::int64_t> order(static_cast<std::size_t>(tokens));
      std::iota(order.begin(), order.end(), 0);
      shuffle(std::span<std::int64_t>(order), random);
      std::vector<float> shuffled_a, shuffled_b;
      for (const std::int64_t t : order) {
        shuffled_a.insert(shuffled_a.end(), whole_a.row(t), whole_a.row(t) + rows);
        shuffled_b.insert(shuffled_b.end(), whole_b.row(t), whole_b.row(t) + columns);
      }
      Sums found(rows, columns);
      set_thread_count(1 + round % 3);
      for (std::int64_t first = 0; first < tokens;) {
        const auto last = std::min<std::int64_t>(tokens, first + 1 + static_cast<std::int64_t>(random.next_below(400)));
        cpu::outer_sums(0.37F, ConstMatrix(shuffled_a.data(), tokens, rows).row_range(first, last),
                        ConstMatrix(shuffled_b.data(), tokens, columns).row_range(first, last), found.view());
        first = last;
      }
      EXPECT_TRUE(found == expected) << tokens << " tokens";
    }
    set_thread_count(2);
  }
}

TEST(OuterSums, WhatIsNoNumberStaysNone) {
  const float a[] = {1, 1}, b[] = {std::numeric_limits<float>::infinity(), 2, 3, std::nanf("")};
  Sums sums(1, 2);
  cpu::outer_sums(1, {a, 2, 1}, {b, 2, 2}, sums.view());
  EXPECT_FALSE(std::isfinite(sums.high[0] + sums.low[0]));
  EXPECT_FALSE(std::isfinite(sums.high[1] + sums.low[1]));
}

}  // namespace
}  // namespace braid::kernels

#include "kernels/layer_norm.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "testing.h"

namespace braid::kernels {
namespace {

using testing::normal_matrix;
using testing::normal_vector;
using testing::OwnedMatrix;
using testing::same_bits;
using testing::with_threads;

constexpr float kNormEpsilon = 1e-5F;

/// Rows far from zero, whose squares' mean would hide their variance.
OwnedMatrix shifted_matrix(RandomStream& random, std::int64_t rows, std::int64_t columns, float shift) {
  OwnedMatrix x = normal_matrix(random, rows, columns);
  for (std::int64_t t = 0; t < rows; ++t) {
    for (std::int64_t i = 0; i < columns; ++i) x.at(t, i) += shift;
  }
  return x;
}

TEST(LayerNorm, RowsComeOutWithMeanZeroAndVarianceOne) {
  RandomStream random(1);
  const OwnedMatrix x = shifted_matrix(random, 4, 100, 50.0F);
  const std::vector<float> ones(100, 1.0F), zeros(100, 0.0F);
  OwnedMatrix y(4, 100), statistics(4, 2), all_ones(1, 100);
  std::fill_n(all_ones.view().row(0), 100, 1.0F);
  cpu::layer_norm_forward(x, ones, zeros, 0.0F, y, statistics);
  for (std::int64_t t = 0; t < 4; ++t) {
    const ConstMatrix row = std::as_const(y).view().row_range(t, t + 1);
    EXPECT_NEAR(testing::inner_product(row, all_ones) / 100.0, 0.0, 1e-5);
    EXPECT_NEAR(testing::inner_product(row, row) / 100.0, 1.0, 1e-4);
    EXPECT_NEAR(statistics.at(t, 0), 50.0, 1.0);
  }
}

TEST(LayerNorm, ReferenceBackwardEqualsFiniteDifferences) {
  RandomStream random(2);
  OwnedMatrix x = normal_matrix(random, 3, 7), y(3, 7), dx(3, 7), statistics(3, 2);
  const OwnedMatrix dy = normal_matrix(random, 3, 7);
  const std::vector<float> weight = normal_vector(random, 7), bias = normal_vector(random, 7);
  const auto loss = [&] {
    reference::layer_norm_forward(x, weight, bias, kNormEpsilon, y, statistics);
    return testing::inner_product(y, dy);
  };
  loss();
  reference::layer_norm_backward(dy, x, weight, statistics, dx);
  EXPECT_TRUE(testing::near(dx, finite_differences(x, loss), 1e-3));
}

RC_GTEST_PROP(LayerNorm, EqualsItsReference, ()) {
  const std::int64_t rows = *rc::gen::inRange(0, 40), columns = *rc::gen::inRange(8, 1100);
  RandomStream random(*rc::gen::arbitrary<std::uint32_t>());
  const OwnedMatrix x = shifted_matrix(random, rows, columns, *rc::gen::element(0.0F, 3.0F));
  const OwnedMatrix dy = normal_matrix(random, rows, columns);
  const std::vector<float> weight = normal_vector(random, columns), bias = normal_vector(random, columns);
  OwnedMatrix y(rows, columns), y_expected(rows, columns), dx = normal_matrix(random, rows, columns), dx_expected = dx;
  OwnedMatrix statistics(rows, 2), statistics_expected = statistics;
  cpu::layer_norm_forward(x, weight, bias, kNormEpsilon, y, statistics);
  reference::layer_norm_forward(x, weight, bias, kNormEpsilon, y_expected, statistics_expected);
  RC_ASSERT(testing::near(y, y_expected, 2e-6));
  RC_ASSERT(testing::near(statistics, statistics_expected, 2e-6));
  cpu::layer_norm_backward(dy, x, weight, statistics_expected, dx);
  reference::layer_norm_backward(dy, x, weight, statistics_expected, dx_expected);
  RC_ASSERT(testing::near(dx, dx_expected, 4e-6));
  RC_ASSERT(y.guards_untouched() && dx.guards_untouched() && statistics.guards_untouched());
}

TEST(LayerNorm, BitsDependNeitherOnThreadsNorOnAlignmentAndAgainGivesThem) {
  RandomStream random(3);
  const OwnedMatrix x = normal_matrix(random, 50, 1003), dy = normal_matrix(random, 50, 1003);
  const std::vector<float> weight = normal_vector(random, 1003), bias = normal_vector(random, 1003);
  OwnedMatrix y(50, 1003), again(50, 1003, 5, 2), statistics(50, 2), dx(50, 1003), apart(50, 1003, 13, 0);
  with_threads(1, [&] {
    cpu::layer_norm_forward(x, weight, bias, kNormEpsilon, y, statistics);
    cpu::layer_norm_backward(dy, x, weight, statistics, dx);
  });
  with_threads(3, [&] {
    cpu::layer_norm_again(x, weight, bias, statistics, again);
    cpu::layer_norm_backward(dy, x, weight, statistics, apart);
  });
  EXPECT_TRUE(same_bits(again, y));
  EXPECT_TRUE(same_bits(apart, dx));
}

}  // namespace
}  // namespace braid::kernels

#include "kernels/rms_norm.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "testing.h"

namespace braid::kernels {
namespace {

using testing::as_row;
using testing::normal_matrix;
using testing::normal_vector;
using testing::OwnedMatrix;
using testing::same_bits;
using testing::with_threads;

constexpr float kEpsilon = 1e-5F;

TEST(RmsNorm, RowsComeOutWithUnitMeanSquare) {
  RandomStream random(1);
  const OwnedMatrix x = normal_matrix(random, 4, 100);
  const std::vector<float> ones(100, 1.0F);
  OwnedMatrix y(4, 100);
  std::vector<float> scale(4);
  cpu::rms_norm_forward(x, ones, 0.0F, y, scale);
  for (std::int64_t t = 0; t < 4; ++t) {
    const ConstMatrix row = y.view().row_range(t, t + 1);
    EXPECT_NEAR(testing::inner_product(row, row) / 100.0, 1.0, 1e-6);
  }
}

TEST(RmsNorm, ReferenceBackwardEqualsFiniteDifferences) {
  RandomStream random(2);
  OwnedMatrix x = normal_matrix(random, 3, 7), y(3, 7), dx(3, 7);
  const OwnedMatrix dy = normal_matrix(random, 3, 7);
  const std::vector<float> weight = normal_vector(random, 7);
  std::vector<float> scale(3);
  const auto loss = [&] {
    reference::rms_norm_forward(x, weight, kEpsilon, y, scale);
    return testing::inner_product(y, dy);
  };
  loss();
  reference::rms_norm_backward(dy, x, weight, scale, dx);
  EXPECT_TRUE(testing::near(dx, finite_differences(x, loss), 1e-3));
}

RC_GTEST_PROP(RmsNorm, EqualsItsReference, ()) {
  // With a column or two the gradient is what cancellation leaves of far larger terms.
  const std::int64_t rows = *rc::gen::inRange(0, 40), columns = *rc::gen::inRange(8, 1100);
  RandomStream random(*rc::gen::arbitrary<std::uint32_t>());
  const OwnedMatrix x = normal_matrix(random, rows, columns), dy = normal_matrix(random, rows, columns);
  const std::vector<float> weight = normal_vector(random, columns);
  OwnedMatrix y(rows, columns), y_expected(rows, columns), dx = normal_matrix(random, rows, columns), dx_expected = dx;
  std::vector<float> scale(static_cast<std::size_t>(rows)), scale_expected = scale;
  cpu::rms_norm_forward(x, weight, kEpsilon, y, scale);
  reference::rms_norm_forward(x, weight, kEpsilon, y_expected, scale_expected);
  RC_ASSERT(testing::near(y, y_expected, 1e-6));
  RC_ASSERT(testing::near(as_row(scale), as_row(scale_expected), 1e-6));
  cpu::rms_norm_backward(dy, x, weight, scale, dx);
  reference::rms_norm_backward(dy, x, weight, scale_expected, dx_expected);
  RC_ASSERT(testing::near(dx, dx_expected, 2e-6));
  RC_ASSERT(y.guards_untouched() && dx.guards_untouched());
}

TEST(RmsNorm, AgainGivesTheSameBits) {
  RandomStream random(3);
  const OwnedMatrix x = normal_matrix(random, 50, 1003);
  const std::vector<float> weight = normal_vector(random, 1003);
  OwnedMatrix y(50, 1003), again(50, 1003, 5, 2);
  std::vector<float> scale(50);
  with_threads(1, [&] { cpu::rms_norm_forward(x, weight, kEpsilon, y, scale); });
  with_threads(3, [&] { cpu::rms_norm_again(x, weight, scale, again); });
  EXPECT_TRUE(same_bits(again, y));
}

TEST(RmsNorm, BackwardBitsDependNeitherOnThreadsNorOnAlignment) {
  RandomStream random(4);
  const OwnedMatrix x = normal_matrix(random, 50, 1003, 0), dy = normal_matrix(random, 50, 1003, 0);
  const std::vector<float> weight = normal_vector(random, 1003), scale = normal_vector(random, 50);
  OwnedMatrix dx(50, 1003), apart(50, 1003, 13, 0);
  with_threads(1, [&] { cpu::rms_norm_backward(dy, x, weight, scale, dx); });
  with_threads(3, [&] { cpu::rms_norm_backward(dy, x, weight, scale, apart); });
  EXPECT_TRUE(same_bits(apart, dx));
}

RC_GTEST_PROP(HeadNorm, EqualsItsReference, ()) {
  const std::int64_t rows = *rc::gen::inRange(0, 20), heads = *rc::gen::inRange(1, 6);
  const std::int64_t width = *rc::gen::inRange(8, 150);
  RandomStream random(*rc::gen::arbitrary<std::uint32_t>());
  const std::vector<float> weight = normal_vector(random, width);
  OwnedMatrix x = normal_matrix(random, rows, heads * width), x_expected = x, before(rows, heads * width);
  OwnedMatrix before_expected = before, scale(rows, heads), scale_expected = scale;
  const OwnedMatrix was = x;
  cpu::head_norm_forward(x, weight, kEpsilon, before, scale);
  reference::head_norm_forward(x_expected, weight, kEpsilon, before_expected, scale_expected);
  RC_ASSERT(testing::near(x, x_expected, 1e-6));
  RC_ASSERT(testing::near(scale, scale_expected, 1e-6));
  RC_ASSERT(same_bits(before, was));
  OwnedMatrix d = normal_matrix(random, rows, heads * width), d_expected = d;
  cpu::head_norm_backward(d, before, weight, scale);
  reference::head_norm_backward(d_expected, before_expected, weight, scale_expected);
  RC_ASSERT(testing::near(d, d_expected, 2e-6));
  RC_ASSERT(x.guards_untouched() && before.guards_untouched() && scale.guards_untouched() && d.guards_untouched());
}

TEST(HeadNorm, ReferenceBackwardEqualsFiniteDifferences) {
  RandomStream random(5);
  OwnedMatrix x = normal_matrix(random, 2, 21), before(2, 21), scale(2, 3), d = normal_matrix(random, 2, 21);
  const OwnedMatrix dy = d;
  const std::vector<float> weight = normal_vector(random, 7);
  const auto loss = [&] {
    OwnedMatrix y = x;
    reference::head_norm_forward(y, weight, kEpsilon, before, scale);
    return testing::inner_product(y, dy);
  };
  loss();
  reference::head_norm_backward(d, before, weight, scale);
  EXPECT_TRUE(testing::near(d, finite_differences(x, loss), 1e-3));
}

}  // namespace
}  // namespace braid::kernels

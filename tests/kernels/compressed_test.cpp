#include "kernels/compressed.h"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "kernels/linear.h"
#include "testing.h"

namespace braid::kernels {
namespace {

using testing::as_row;
using testing::normal_matrix;
using testing::normal_vector;
using testing::OwnedMatrix;
using testing::same_bits;
using testing::with_threads;

constexpr WeightType kHeld[] = {WeightType::bf16, WeightType::int8, WeightType::nf4};

OwnedMatrix widened(const CompressedWeight& weight) {
  OwnedMatrix wide(weight.rows(), weight.columns());
  weight.widen(0, 0, wide);
  return wide;
}

/// What was rounded once stays as it is.
RC_GTEST_PROP(CompressedWeight, RoundsByNoMoreThanItsStepsAndOnlyOnce, ()) {
  const std::int64_t rows = *rc::gen::inRange(1, 20), columns = *rc::gen::inRange(1, 300);
  RandomStream random(*rc::gen::arbitrary<std::uint32_t>());
  const OwnedMatrix weight = normal_matrix(random, rows, columns);
  for (const WeightType type : kHeld) {
    const OwnedMatrix once = widened({weight, type});
    RC_ASSERT(testing::near(widened({once, type}), once, 1e-6));
    for (std::int64_t row = 0; row < rows; ++row) {
      float of_row = 0;
      for (std::int64_t i = 0; i < columns; ++i) of_row = std::max(of_row, std::abs(weight.at(row, i)));
      for (std::int64_t i = 0; i < columns; ++i) {
        const float error = std::abs(once.at(row, i) - weight.at(row, i));
        // Half a step: of bf16 2⁻⁹ of the number, of int8 the row's 1 / 254, of NF4 the widest gap's half, 0.152.
        const float most = type == WeightType::bf16   ? std::abs(weight.at(row, i)) / 256
                           : type == WeightType::int8 ? of_row / 253
                                                      : 0.16F * of_row;
        RC_ASSERT(error <= most);
      }
    }
  }
}

TEST(CompressedWeight, WidensAnyPartAsItDoesTheWhole) {
  RandomStream random(2);
  const OwnedMatrix weight = normal_matrix(random, 70, 201);
  for (const WeightType type : kHeld) {
    const CompressedWeight held(weight, type);
    const OwnedMatrix whole = widened(held);
    OwnedMatrix part(13, 77);
    held.widen(31, 65, part);
    EXPECT_TRUE(same_bits(part, std::as_const(whole).view().row_range(31, 44).column_range(65, 142)));
    EXPECT_TRUE(part.guards_untouched());
  }
}

TEST(CompressedWeight, TakesTheBytesOfItsType) {
  RandomStream random(3);
  const OwnedMatrix weight = normal_matrix(random, 10, 128);
  EXPECT_EQ(CompressedWeight(weight, WeightType::bf16).bytes(), 2 * 1280);
  EXPECT_EQ(CompressedWeight(weight, WeightType::int8).bytes(), 1280 + 4 * 10);
  EXPECT_EQ(CompressedWeight(weight, WeightType::nf4).bytes(), 640 + 4 * 20);
}

TEST(CompressedWeight, ZerosStayZeros) {
  const OwnedMatrix zeros(3, 65);
  for (const WeightType type : kHeld) EXPECT_TRUE(same_bits(widened({zeros, type}), zeros));
}

/// Of weights that are larger than a part, too, which is widened at a time.
TEST(CompressedLinear, MultipliesByWhatIsHeld) {
  RandomStream random(4);
  for (const auto& [out, in, tokens] : std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>>{
           {7, 5, 3}, {130, 65, 40}, {2600, 2000, 9}, {100, 6000, 5}}) {
    const OwnedMatrix weight = normal_matrix(random, out, in), x = normal_matrix(random, tokens, in),
                      dy = normal_matrix(random, tokens, out);
    const std::vector<float> bias = normal_vector(random, out);
    for (const WeightType type : kHeld) {
      const auto linear = cpu::pack_linear(weight, bias, true, type),
                 truth = reference::pack_linear(weight, bias, true, type);
      OwnedMatrix y(tokens, out), y_expected(tokens, out), dx(tokens, in), dx_expected(tokens, in);
      linear->forward(x, y);
      truth->forward(x, y_expected);
      EXPECT_TRUE(testing::near(y, y_expected, 1e-5));
      linear->backward(dy, dx);
      truth->backward(dy, dx_expected);
      EXPECT_TRUE(testing::near(dx, dx_expected, 1e-5));
      EXPECT_TRUE(y.guards_untouched() && dx.guards_untouched());
      OwnedMatrix alone(1, out);
      with_threads(1, [&] { linear->forward(std::as_const(x).view().row_range(1, 2), alone); });
      EXPECT_TRUE(same_bits(alone, std::as_const(y).view().row_range(1, 2))) << "a row depends on others";
    }
  }
}

}  // namespace
}  // namespace braid::kernels

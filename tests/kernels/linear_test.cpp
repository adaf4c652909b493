#include "kernels/linear.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "testing.h"

namespace braid::kernels {
namespace {

using testing::fill_normal;
using testing::normal_matrix;
using testing::normal_vector;
using testing::OwnedMatrix;
using testing::same_bits;
using testing::with_threads;

std::unique_ptr<FrozenLinear> packed(ConstMatrix weight, std::span<const float> bias, bool backward = true) {
  return cpu::pack_linear(weight, bias, backward, WeightType::f32);
}

TEST(Linear, ReferenceBackwardIsTheAdjointOfForward) {
  RandomStream random(1);
  const OwnedMatrix weight = normal_matrix(random, 7, 5), x = normal_matrix(random, 3, 5),
                    dy = normal_matrix(random, 3, 7);
  OwnedMatrix y(3, 7), dx(3, 5);
  reference::linear_forward(x, weight, {}, y);
  reference::linear_backward(dy, weight, dx);
  EXPECT_NEAR(testing::inner_product(dy, y), testing::inner_product(dx, x), 1e-5);
}

RC_GTEST_PROP(PackedLinear, EqualsItsReference, ()) {
  const std::int64_t rows = *rc::gen::inRange(1, 100), in = *rc::gen::inRange(1, 300), out = *rc::gen::inRange(1, 300);
  const std::int64_t gap = *rc::gen::element(0, 3);
  RandomStream random(*rc::gen::arbitrary<std::uint32_t>());
  const OwnedMatrix weight = normal_matrix(random, out, in, gap);
  const std::vector<float> bias = normal_vector(random, *rc::gen::arbitrary<bool>() ? out : 0);
  const OwnedMatrix x = normal_matrix(random, rows, in, gap), dy = normal_matrix(random, rows, out, gap);
  const auto linear = packed(weight, bias);
  OwnedMatrix y(rows, out, gap), y_expected(rows, out), dx(rows, in, gap), dx_expected(rows, in);
  linear->forward(x, y);
  reference::linear_forward(x, weight, bias, y_expected);
  RC_ASSERT(testing::near(y, y_expected, 2e-6));
  RC_ASSERT(y.guards_untouched());
  linear->backward(dy, dx);
  reference::linear_backward(dy, weight, dx_expected);
  RC_ASSERT(testing::near(dx, dx_expected, 2e-6));
  RC_ASSERT(dx.guards_untouched());
}

TEST(PackedLinear, RowsDoNotDependOnHowManyThereAreNorOnTheirPlaceNorOnThreads) {
  RandomStream random(2);
  constexpr std::int64_t kRows = 530;
  for (const auto& [in, out] : {std::pair<std::int64_t, std::int64_t>{64, 48}, {1024, 256}, {300, 1000}, {2100, 40}}) {
    const OwnedMatrix weight = normal_matrix(random, out, in, 0), x = normal_matrix(random, kRows, in, 0);
    const auto linear = packed(weight, normal_vector(random, out));
    OwnedMatrix all(kRows, out, 0), all_back(kRows, in, 0);
    with_threads(1, [&] {
      linear->forward(x, all);
      linear->backward(all, all_back);
    });
    for (const int threads : {1, 2, 3, 8}) {
      // Every number of rows up to the longest tile of any kernel of ours or of oneDNN's, and runs of several.
      std::vector<std::int64_t> counts = {31, 33, 64, 97, 100, 257, 530};
      for (std::int64_t count = 1; count <= 16; ++count) counts.push_back(count);
      for (const std::int64_t count : counts) {
        for (const std::int64_t first : {std::int64_t{0}, (kRows - count) / 2, kRows - count}) {
          OwnedMatrix some(count, out, 0), some_back(count, in, 0);
          with_threads(threads, [&] {
            linear->forward(x.view().row_range(first, first + count), some);
            linear->backward(some, some_back);
          });
          ASSERT_TRUE(same_bits(some, all.view().row_range(first, first + count)))
              << in << " to " << out << ", rows " << first << " + " << count << ", " << threads << " threads";
          ASSERT_TRUE(same_bits(some_back, all_back.view().row_range(first, first + count)))
              << out << " back to " << in << ", rows " << first << " + " << count << ", " << threads << " threads";
        }
      }
    }
  }
}

TEST(PackedLinear, ProductsOfEightRowsOrMoreAreMadeOfWhatWasCompiled) {
  RandomStream random(5);
  constexpr std::int64_t kIn = 24, kOut = 40, kMostRows = 2200;
  const OwnedMatrix weight = normal_matrix(random, kOut, kIn);
  const auto linear = packed(weight, normal_vector(random, kOut));
  linear->compile();
  const std::size_t compiled = cpu::compiled_products();
  OwnedMatrix x = normal_matrix(random, kMostRows, kIn, 0), y(kMostRows, kOut, 0);
  for (std::int64_t rows = 8; rows <= kMostRows; ++rows) {
    linear->forward(x.view().row_range(0, rows), y.view().row_range(0, rows));
    linear->backward(y.view().row_range(0, rows), x.view().row_range(0, rows));
    ASSERT_EQ(cpu::compiled_products(), compiled) << rows << " rows";
  }
  linear->compile();
  EXPECT_EQ(cpu::compiled_products(), compiled);
}

TEST(PackedLinear, StridesDoNotChangeBits) {
  RandomStream random(3);
  const OwnedMatrix weight = normal_matrix(random, 90, 70), x = normal_matrix(random, 20, 70, 0);
  OwnedMatrix apart(20, 70, 13, 2), y(20, 90, 0), y_apart(20, 90, 5, 1);
  for (std::int64_t row = 0; row < 20; ++row) std::copy_n(x.view().row(row), 70, apart.view().row(row));
  const auto linear = packed(weight, {});
  linear->forward(x, y);
  linear->forward(apart, y_apart);
  EXPECT_TRUE(same_bits(y_apart, y));
}

TEST(PackedLinear, KeepsNothingOfTheWeightItWasMadeFrom) {
  RandomStream random(4);
  OwnedMatrix weight = normal_matrix(random, 9, 6);
  std::vector<float> bias = normal_vector(random, 9);
  const OwnedMatrix x = normal_matrix(random, 4, 6);
  OwnedMatrix expected(4, 9), y(4, 9);
  reference::linear_forward(x, weight, bias, expected);
  const auto linear = packed(weight, bias);
  fill_normal(weight, random);
  bias.assign(9, 100.0F);
  linear->forward(x, y);
  EXPECT_TRUE(testing::near(y, expected, 1e-6));
}

TEST(PackedLinear, CountsTheBytesOfBothCopies) {
  RandomStream random(5);
  const OwnedMatrix weight = normal_matrix(random, 128, 256);
  const auto both = packed(weight, {}), forward_only = packed(weight, {}, false);
  EXPECT_GE(forward_only->bytes(), 128 * 256 * 4);
  EXPECT_GE(both->bytes(), 2 * 128 * 256 * 4);
  EXPECT_EQ(both->in(), 256);
  EXPECT_EQ(both->out(), 128);
}

TEST(PackedLinear, RefusesABackwardPassItWasNotMadeFor) {
  RandomStream random(6);
  const auto linear = packed(normal_matrix(random, 4, 3), {}, false);
  OwnedMatrix dy(2, 4), dx(2, 3);
  EXPECT_THROW(linear->backward(dy, dx), InternalError);
}

TEST(PackedLinear, NoRowsIsNoWork) {
  RandomStream random(7);
  const auto linear = packed(normal_matrix(random, 4, 3), {});
  linear->forward(ConstMatrix(nullptr, 0, 3), Matrix(nullptr, 0, 4));
}

}  // namespace
}  // namespace braid::kernels

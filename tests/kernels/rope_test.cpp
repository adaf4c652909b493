#include "kernels/rope.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "testing.h"

namespace braid::kernels {
namespace {

using testing::normal_matrix;
using testing::OwnedMatrix;

std::vector<float> frequencies_of(std::int64_t head_dim) {
  std::vector<float> frequencies;
  for (std::int64_t i = 0; i < head_dim / 2; ++i) {
    frequencies.push_back(static_cast<float>(std::pow(10000.0, -2.0 * static_cast<double>(i) / head_dim)));
  }
  return frequencies;
}

TEST(Rope, PositionZeroTurnsNothing) {
  RandomStream random(1);
  OwnedMatrix x = normal_matrix(random, 2, 24);
  const OwnedMatrix before = x;
  cpu::rope_forward(x, 8, std::vector<std::int32_t>{0, 0}, frequencies_of(8), 1);
  EXPECT_TRUE(testing::same_bits(x, before));
}

TEST(Rope, ProductOfTwoTurnedRowsDependsOnTheirDistanceAlone) {
  RandomStream random(2);
  const OwnedMatrix rows = normal_matrix(random, 2, 16);
  const auto product = [&](std::int32_t first, std::int32_t second) {
    OwnedMatrix turned = rows;
    cpu::rope_forward(turned, 16, std::vector<std::int32_t>{first, second}, frequencies_of(16), 1);
    return testing::inner_product(turned.view().row_range(0, 1), turned.view().row_range(1, 2));
  };
  EXPECT_NEAR(product(5, 2), product(105, 102), 1e-4);
  EXPECT_NEAR(product(0, 9), product(40, 49), 1e-4);
}

RC_GTEST_PROP(Rope, EqualsItsReferenceAndTurnsBack, ()) {
  const std::int64_t rows = *rc::gen::inRange(0, 30), heads = *rc::gen::inRange(1, 5);
  const std::int64_t head_dim = 2 * *rc::gen::inRange<std::int64_t>(1, 70);
  RandomStream random(*rc::gen::arbitrary<std::uint32_t>());
  std::vector<std::int32_t> positions;
  for (std::int64_t t = 0; t < rows; ++t) positions.push_back(static_cast<std::int32_t>(random.next_below(131072)));
  const OwnedMatrix before = normal_matrix(random, rows, heads * head_dim);
  OwnedMatrix x = before, expected = before;
  // Powers of two, which round nothing.
  const float scale = *rc::gen::element(1.0F, 2.0F);
  cpu::rope_forward(x, head_dim, positions, frequencies_of(head_dim), scale);
  reference::rope_forward(expected, head_dim, positions, frequencies_of(head_dim), scale);
  RC_ASSERT(testing::near(x, expected, 1e-6));
  RC_ASSERT(x.guards_untouched());
  cpu::rope_backward(x, head_dim, positions, frequencies_of(head_dim), 1 / scale);
  reference::rope_backward(expected, head_dim, positions, frequencies_of(head_dim), 1 / scale);
  RC_ASSERT(testing::near(x, before, 1e-6));
  RC_ASSERT(testing::near(expected, before, 1e-6));
}

}  // namespace
}  // namespace braid::kernels

#include "kernels/swiglu.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "testing.h"

namespace braid::kernels {
namespace {

using testing::fill_normal;
using testing::normal_matrix;
using testing::OwnedMatrix;
using testing::same_bits;
using testing::with_threads;

TEST(Swiglu, ReferenceBackwardEqualsFiniteDifferences) {
  RandomStream random(1);
  OwnedMatrix gate_up = normal_matrix(random, 3, 10), y(3, 5), d_gate_up(3, 10);
  const OwnedMatrix dy = normal_matrix(random, 3, 5);
  reference::swiglu_backward(dy, gate_up, d_gate_up);
  const auto loss = [&] {
    reference::swiglu_forward(gate_up, y);
    return testing::inner_product(y, dy);
  };
  EXPECT_TRUE(testing::near(d_gate_up, finite_differences(gate_up, loss), 1e-3));
}

RC_GTEST_PROP(Swiglu, EqualsItsReference, ()) {
  const std::int64_t rows = *rc::gen::inRange(0, 30), columns = *rc::gen::inRange(1, 1500);
  RandomStream random(*rc::gen::arbitrary<std::uint32_t>());
  OwnedMatrix gate_up(rows, 2 * columns), y(rows, columns), y_expected(rows, columns);
  fill_normal(gate_up, random, *rc::gen::element(1.0F, 30.0F));
  const OwnedMatrix dy = normal_matrix(random, rows, columns);
  OwnedMatrix d_gate_up(rows, 2 * columns), d_expected(rows, 2 * columns);
  cpu::swiglu_forward(gate_up, y);
  reference::swiglu_forward(gate_up, y_expected);
  RC_ASSERT(testing::near(y, y_expected, 1e-6));
  cpu::swiglu_backward(dy, gate_up, d_gate_up);
  reference::swiglu_backward(dy, gate_up, d_expected);
  RC_ASSERT(testing::near(d_gate_up, d_expected, 1e-6));
  cpu::swiglu_backward(dy, gate_up, gate_up);
  RC_ASSERT(same_bits(gate_up, d_gate_up));
  RC_ASSERT(y.guards_untouched() && d_gate_up.guards_untouched());
}

TEST(Swiglu, ExtremeGatesGiveZeroOrTheGateItself) {
  OwnedMatrix gate_up(1, 6), y(1, 3);
  const float numbers[] = {-200.0F, 200.0F, 0.0F, 3.0F, 3.0F, 3.0F};
  std::copy_n(numbers, 6, gate_up.view().row(0));
  cpu::swiglu_forward(gate_up, y);
  EXPECT_EQ(y.at(0, 0), 0.0F);
  EXPECT_EQ(y.at(0, 1), 600.0F);
  EXPECT_EQ(y.at(0, 2), 0.0F);
}

TEST(Swiglu, BitsDependNeitherOnThreadsNorOnPlace) {
  RandomStream random(2);
  constexpr std::int64_t kRows = 30, kColumns = 1501;
  const OwnedMatrix gate_up = normal_matrix(random, kRows, 2 * kColumns);
  OwnedMatrix y(kRows, kColumns), reversed(kRows, 2 * kColumns, 5, 2), y_reversed(kRows, kColumns);
  // Columns in reverse put every element at another place in its register.
  for (std::int64_t t = 0; t < kRows; ++t) {
    for (std::int64_t i = 0; i < kColumns; ++i) {
      reversed.at(t, kColumns - 1 - i) = gate_up.at(t, i);
      reversed.at(t, 2 * kColumns - 1 - i) = gate_up.at(t, kColumns + i);
    }
  }
  with_threads(1, [&] { cpu::swiglu_forward(gate_up, y); });
  with_threads(3, [&] { cpu::swiglu_forward(reversed, y_reversed); });
  for (std::int64_t t = 0; t < kRows; ++t) std::reverse(y_reversed.view().row(t), y_reversed.view().row(t) + kColumns);
  EXPECT_TRUE(same_bits(y_reversed, y));
}

}  // namespace
}  // namespace braid::kernels

#include "kernels/activation.h"

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

constexpr Activation kKinds[] = {Activation::swiglu, Activation::geglu, Activation::gelu, Activation::silu,
                                 Activation::relu};

std::int64_t inputs(Activation kind, std::int64_t columns) {
  return (has_gate(kind) ? 2 : 1) * columns;
}

TEST(Activation, ReferenceBackwardEqualsFiniteDifferences) {
  for (const Activation kind : kKinds) {
    RandomStream random(1);
    OwnedMatrix x = normal_matrix(random, 3, inputs(kind, 5)), y(3, 5), dx(3, inputs(kind, 5));
    const OwnedMatrix dy = normal_matrix(random, 3, 5);
    reference::activation_backward(kind, dy, x, dx);
    const auto loss = [&] {
      reference::activation_forward(kind, x, y);
      return testing::inner_product(y, dy);
    };
    EXPECT_TRUE(testing::near(dx, finite_differences(x, loss), 1e-3)) << static_cast<int>(kind);
  }
}

RC_GTEST_PROP(Activation, EqualsItsReference, ()) {
  const Activation kind = *rc::gen::elementOf(std::vector(std::begin(kKinds), std::end(kKinds)));
  const std::int64_t rows = *rc::gen::inRange(0, 30), columns = *rc::gen::inRange(1, 1500);
  RandomStream random(*rc::gen::arbitrary<std::uint32_t>());
  OwnedMatrix x(rows, inputs(kind, columns)), y(rows, columns), y_expected(rows, columns);
  fill_normal(x, random, *rc::gen::element(1.0F, 30.0F));
  const OwnedMatrix dy = normal_matrix(random, rows, columns);
  OwnedMatrix dx(rows, x.columns()), d_expected = dx;
  cpu::activation_forward(kind, x, y);
  reference::activation_forward(kind, x, y_expected);
  RC_ASSERT(testing::near(y, y_expected, 1e-6));
  cpu::activation_backward(kind, dy, x, dx);
  reference::activation_backward(kind, dy, x, d_expected);
  RC_ASSERT(testing::near(dx, d_expected, 2e-6));
  cpu::activation_backward(kind, dy, x, x);
  RC_ASSERT(same_bits(x, dx));
  RC_ASSERT(y.guards_untouched() && dx.guards_untouched());
}

TEST(Activation, ExtremesGiveZeroOrTheNumberItself) {
  OwnedMatrix x(1, 6), y(1, 3), plain(1, 6);
  const float numbers[] = {-200.0F, 200.0F, 0.0F, 3.0F, 3.0F, 3.0F};
  std::copy_n(numbers, 6, x.view().row(0));
  for (const Activation kind : kKinds) {
    if (has_gate(kind)) {
      cpu::activation_forward(kind, x, y);
      EXPECT_EQ(y.at(0, 0), 0.0F);
      EXPECT_EQ(y.at(0, 1), 600.0F);
      EXPECT_EQ(y.at(0, 2), 0.0F);
    } else {
      cpu::activation_forward(kind, x, plain);
      EXPECT_EQ(plain.at(0, 0), 0.0F);
      EXPECT_EQ(plain.at(0, 1), 200.0F);
      EXPECT_EQ(plain.at(0, 2), 0.0F);
    }
  }
}

TEST(Activation, BitsDependNeitherOnThreadsNorOnPlace) {
  RandomStream random(2);
  constexpr std::int64_t kRows = 30, kColumns = 1501;
  for (const Activation kind : kKinds) {
    const std::int64_t width = inputs(kind, kColumns);
    const OwnedMatrix x = normal_matrix(random, kRows, width);
    OwnedMatrix y(kRows, kColumns), reversed(kRows, width, 5, 2), y_reversed(kRows, kColumns);
    // Columns in reverse put every element at another place in its register.
    for (std::int64_t t = 0; t < kRows; ++t) {
      for (std::int64_t i = 0; i < width; ++i) {
        const std::int64_t half = i / kColumns * kColumns;
        reversed.at(t, half + kColumns - 1 - (i - half)) = x.at(t, i);
      }
    }
    with_threads(1, [&] { cpu::activation_forward(kind, x, y); });
    with_threads(3, [&] { cpu::activation_forward(kind, reversed, y_reversed); });
    for (std::int64_t t = 0; t < kRows; ++t)
      std::reverse(y_reversed.view().row(t), y_reversed.view().row(t) + kColumns);
    EXPECT_TRUE(same_bits(y_reversed, y));
  }
}

}  // namespace
}  // namespace braid::kernels

#include "kernels/row_norms.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "kernels/linear.h"
#include "kernels/matmul.h"
#include "testing.h"

namespace braid::kernels {
namespace {

using testing::normal_matrix;
using testing::normal_vector;
using testing::OwnedMatrix;

/// |W + s B A|² of each row, as it is defined.
RC_GTEST_PROP(LowRankSquares, AreThoseOfTheRowsOfTheSum, ()) {
  const std::int64_t in = *rc::gen::inRange(1, 70), out = *rc::gen::inRange(1, 90), rank = *rc::gen::inRange(1, 20);
  const bool biased = *rc::gen::arbitrary<bool>();
  RandomStream random(*rc::gen::arbitrary<std::uint32_t>());
  const OwnedMatrix w = normal_matrix(random, out, in), a = normal_matrix(random, rank, in);
  const OwnedMatrix b = normal_matrix(random, out, rank);
  const std::vector<float> bias = biased ? normal_vector(random, out) : std::vector<float>();
  const float s = 0.7F;
  std::vector<float> squares, expected;
  for (std::int64_t i = 0; i < out; ++i) {
    double of_w = 0, of_sum = 0;
    for (std::int64_t j = 0; j < in; ++j) {
      double sum = w.at(i, j);
      for (std::int64_t k = 0; k < rank; ++k) sum += double{s} * b.at(i, k) * a.at(k, j);
      of_w += double{w.at(i, j)} * w.at(i, j);
      of_sum += sum * sum;
    }
    squares.push_back(static_cast<float>(of_w));
    expected.push_back(static_cast<float>(of_sum));
  }
  OwnedMatrix with_weight(rank, out), inner(rank, rank);
  reference::linear_forward(a, w, bias, with_weight);
  reference::matmul(1, a, Transpose::no, a, Transpose::yes, 0, inner);
  std::vector<float> by_reference = squares;
  cpu::low_rank_squares(s, b, with_weight, bias, inner, squares);
  reference::low_rank_squares(s, b, with_weight, bias, inner, by_reference);
  RC_ASSERT(testing::near(testing::as_row(squares), testing::as_row(expected), 1e-5));
  RC_ASSERT(testing::near(testing::as_row(by_reference), testing::as_row(expected), 1e-5));
  std::vector<float> roots(squares.size()), by_hand(squares.size());
  cpu::inverse_roots(squares, roots);
  reference::inverse_roots(squares, by_hand);
  RC_ASSERT(roots == by_hand);
}

TEST(InverseRoots, OfNothingAreFinite) {
  std::vector<float> squares = {0.0F, 4.0F};
  cpu::inverse_roots(squares, squares);
  EXPECT_FLOAT_EQ(squares[1], 0.5F);
  EXPECT_NEAR(squares[0], 1e15, 1e9);
}

}  // namespace
}  // namespace braid::kernels

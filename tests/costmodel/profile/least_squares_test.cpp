#include "costmodel/profile/least_squares.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/random.h"

namespace braid::costmodel {
namespace {

RC_GTEST_PROP(LeastSquares, NoNonNegativePointIsBetter, ()) {
  RandomStream random(static_cast<std::uint64_t>(*rc::gen::inRange(0, 1 << 30)));
  const int unknowns = *rc::gen::inRange(1, 6);
  const int rows = unknowns + *rc::gen::inRange(0, 10);
  Eigen::MatrixXd a(rows, unknowns);
  Eigen::VectorXd b(rows);
  for (int i = 0; i < rows; ++i) {
    for (int k = 0; k < unknowns; ++k) a(i, k) = random.next_normal();
    b(i) = random.next_normal();
  }
  const Eigen::VectorXd x = non_negative_least_squares(a, b);
  RC_ASSERT(x.minCoeff() >= 0);
  // Karush-Kuhn-Tucker: no downhill direction but into the bounds.
  const Eigen::VectorXd gradient = a.transpose() * (a * x - b);
  for (int k = 0; k < unknowns; ++k) {
    RC_ASSERT(gradient(k) > -1e-8);
    RC_ASSERT(x(k) == 0 || std::abs(gradient(k)) < 1e-8);
  }
}

}  // namespace
}  // namespace braid::costmodel

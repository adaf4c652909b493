#include "kernels/columns.h"

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

RC_GTEST_PROP(Columns, EqualTheirReferences, ()) {
  const std::int64_t rows = *rc::gen::inRange(0, 60), columns = *rc::gen::inRange(1, 900);
  RandomStream random(*rc::gen::arbitrary<std::uint32_t>());
  const std::vector<float> scale = normal_vector(random, columns);
  const OwnedMatrix x = normal_matrix(random, rows, columns), other = normal_matrix(random, rows, columns);
  const bool accumulate = *rc::gen::arbitrary<bool>();
  OwnedMatrix y = normal_matrix(random, rows, columns), expected = y;
  cpu::scale_columns(scale, x, accumulate, y);
  reference::scale_columns(scale, x, accumulate, expected);
  RC_ASSERT(testing::near(y, expected, 1e-6));
  cpu::add_row(-1.5F, scale, y);
  reference::add_row(-1.5F, scale, expected);
  RC_ASSERT(testing::near(y, expected, 1e-6));
  cpu::scale_columns(scale, y, false, y);
  reference::scale_columns(scale, expected, false, expected);
  RC_ASSERT(testing::near(y, expected, 2e-6));
  RC_ASSERT(y.guards_untouched());
  std::vector<float> sums = normal_vector(random, columns), sums_expected = sums;
  cpu::sum_columns(0.5F, x, other, sums);
  reference::sum_columns(0.5F, x, other, sums_expected);
  RC_ASSERT(testing::near(as_row(sums), as_row(sums_expected), 1e-5));
  cpu::sum_columns(2.0F, x, {}, sums);
  reference::sum_columns(2.0F, x, {}, sums_expected);
  RC_ASSERT(testing::near(as_row(sums), as_row(sums_expected), 1e-5));
}

TEST(Columns, SumsDoNotDependOnThreads) {
  RandomStream random(1);
  const OwnedMatrix a = normal_matrix(random, 300, 701), b = normal_matrix(random, 300, 701);
  std::vector<float> one(701), many(701);
  with_threads(1, [&] { cpu::sum_columns(1, a, b, one); });
  with_threads(3, [&] { cpu::sum_columns(1, a, b, many); });
  EXPECT_TRUE(same_bits(as_row(one), as_row(many)));
}

}  // namespace
}  // namespace braid::kernels

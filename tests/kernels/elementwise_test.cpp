#include "kernels/elementwise.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "testing.h"

namespace braid::kernels {
namespace {

using testing::normal_matrix;
using testing::normal_vector;
using testing::OwnedMatrix;
using testing::with_threads;

RC_GTEST_PROP(Add, EqualsItsReference, ()) {
  const std::int64_t rows = *rc::gen::inRange(0, 50), columns = *rc::gen::inRange(1, 1500);
  RandomStream random(*rc::gen::arbitrary<std::uint32_t>());
  const OwnedMatrix x = normal_matrix(random, rows, columns);
  OwnedMatrix y = normal_matrix(random, rows, columns, 7), expected = y;
  cpu::add(x, y);
  reference::add(x, expected);
  RC_ASSERT(testing::same_bits(y, expected));
  RC_ASSERT(y.guards_untouched());
}

TEST(SquaredNorm, EqualsItsReference) {
  RandomStream random(1);
  for (const std::int64_t count : {0, 1, 15, 16, 17, 8191, 8192, 8193, 100000}) {
    const std::vector<float> x = normal_vector(random, count + 1);
    const std::span<const float> unaligned = std::span(x).subspan(1);
    const double expected = reference::squared_norm(unaligned);
    EXPECT_NEAR(cpu::squared_norm(unaligned), expected, 1e-12 * expected) << count;
  }
}

TEST(SquaredNorm, DependsNeitherOnThreadsNorOnAlignment) {
  RandomStream random(2);
  const std::vector<float> x = normal_vector(random, 100003);
  std::vector<float> shifted(x.size() + 1);
  std::copy(x.begin(), x.end(), shifted.begin() + 1);
  double alone = 0.0, together = 0.0;
  with_threads(1, [&] { alone = cpu::squared_norm(x); });
  with_threads(3, [&] { together = cpu::squared_norm(std::span(shifted).subspan(1)); });
  EXPECT_EQ(alone, together);
}

}  // namespace
}  // namespace braid::kernels

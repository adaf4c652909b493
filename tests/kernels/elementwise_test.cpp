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

RC_GTEST_PROP(CopyFillScale, EqualTheirReferences, ()) {
  const std::int64_t rows = *rc::gen::inRange(0, 50), columns = *rc::gen::inRange(1, 1500);
  RandomStream random(*rc::gen::arbitrary<std::uint32_t>());
  const OwnedMatrix x = normal_matrix(random, rows, columns);
  const OwnedMatrix before = normal_matrix(random, rows, columns, 7);
  const auto factor = static_cast<float>(random.next_normal());
  const auto agree = [&](const auto& own, const auto& reference) {
    OwnedMatrix y = before, expected = before;
    own(Matrix(y));
    reference(Matrix(expected));
    RC_ASSERT(testing::near(y, expected, 1e-6));
    RC_ASSERT(y.guards_untouched());
  };
  agree([&](Matrix y) { cpu::copy(x, y); }, [&](Matrix y) { reference::copy(x, y); });
  agree([&](Matrix y) { cpu::fill(factor, y); }, [&](Matrix y) { reference::fill(factor, y); });
  for (const bool accumulate : {false, true})
    agree([&](Matrix y) { cpu::scale(factor, x, accumulate, y); },
          [&](Matrix y) { reference::scale(factor, x, accumulate, y); });
}

TEST(SquaredNorms, EqualTheirReference) {
  RandomStream random(1);
  std::vector<std::vector<float>> numbers;
  std::vector<ConstVector> parts;
  for (const std::int64_t count : {0, 1, 15, 16, 17, 8191, 8192, 8193, 100000})
    numbers.push_back(normal_vector(random, count + 1));
  for (const std::vector<float>& part : numbers) parts.push_back(std::span(part).subspan(1));
  std::vector<double> sums(parts.size()), expected(parts.size());
  cpu::squared_norms(parts, sums);
  reference::squared_norms(parts, expected);
  for (std::size_t i = 0; i < parts.size(); ++i) EXPECT_NEAR(sums[i], expected[i], 1e-12 * expected[i]) << i;
}

TEST(SquaredNorms, DependNeitherOnThreadsNorOnAlignment) {
  RandomStream random(2);
  const std::vector<float> x = normal_vector(random, 100003);
  std::vector<float> shifted(x.size() + 1);
  std::copy(x.begin(), x.end(), shifted.begin() + 1);
  std::vector<double> alone(1), together(1);
  const ConstVector straight = x, off = std::span(shifted).subspan(1);
  with_threads(1, [&] { cpu::squared_norms({&straight, 1}, alone); });
  with_threads(3, [&] { cpu::squared_norms({&off, 1}, together); });
  EXPECT_EQ(alone, together);
}

}  // namespace
}  // namespace braid::kernels

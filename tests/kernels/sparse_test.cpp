#include "kernels/sparse.h"

#include <algorithm>
#include <set>

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

struct RandomPlaces {
  RandomPlaces(RandomStream& random, std::int64_t out, std::int64_t in, std::int64_t count) {
    std::set<std::pair<std::int32_t, std::int32_t>> all;
    while (std::ssize(all) < std::min(count, out * in))
      all.emplace(random.next_below(static_cast<std::uint64_t>(out)),
                  random.next_below(static_cast<std::uint64_t>(in)));
    for (const auto& [row, column] : all) rows.push_back(row), columns.push_back(column);
  }
  SparsePlaces part(std::int64_t r0, std::int64_t r1, std::int64_t c0, std::int64_t c1) const {
    return {rows, columns, r0, r1, c0, c1};
  }
  std::vector<std::int32_t> rows, columns;
};

RC_GTEST_PROP(Sparse, EqualsItsReferenceAndTheDenseProduct, ()) {
  const std::int64_t tokens = *rc::gen::inRange(0, 30), in = *rc::gen::inRange(1, 90), out = *rc::gen::inRange(1, 90);
  RandomStream random(*rc::gen::arbitrary<std::uint32_t>());
  const RandomPlaces sparse(random, out, in, *rc::gen::inRange(1, 2000));
  const std::vector<float> values = normal_vector(random, std::ssize(sparse.rows));
  const std::int64_t r0 = *rc::gen::inRange<std::int64_t>(0, out), r1 = *rc::gen::inRange(r0 + 1, out + 1);
  const std::int64_t c0 = *rc::gen::inRange<std::int64_t>(0, in), c1 = *rc::gen::inRange(c0 + 1, in + 1);
  const SparsePlaces part = sparse.part(r0, r1, c0, c1);
  const OwnedMatrix x = normal_matrix(random, tokens, c1 - c0), dy = normal_matrix(random, tokens, r1 - r0);
  OwnedMatrix y = normal_matrix(random, tokens, r1 - r0), expected = y, dense = y;
  cpu::sparse_forward(part, values, x, y);
  reference::sparse_forward(part, values, x, expected);
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (!part.counts(k)) continue;
    for (std::int64_t t = 0; t < tokens; ++t)
      dense.at(t, sparse.rows[k] - r0) += values[k] * x.at(t, sparse.columns[k] - c0);
  }
  RC_ASSERT(testing::near(y, expected, 1e-5));
  RC_ASSERT(testing::near(expected, dense, 1e-5));
  OwnedMatrix dx = normal_matrix(random, tokens, c1 - c0), dx_expected = dx;
  std::vector<float> d_values = normal_vector(random, std::ssize(values)), d_expected = d_values;
  cpu::sparse_backward(part, values, x, dy, d_values, dx);
  reference::sparse_backward(part, values, x, dy, d_expected, dx_expected);
  RC_ASSERT(testing::near(dx, dx_expected, 1e-5));
  RC_ASSERT(testing::near(as_row(d_values), as_row(d_expected), 1e-5));
  RC_ASSERT(y.guards_untouched() && dx.guards_untouched());
}

TEST(Sparse, ReferenceBackwardEqualsFiniteDifferences) {
  RandomStream random(2);
  const RandomPlaces sparse(random, 5, 7, 12);
  const SparsePlaces all = sparse.part(0, 5, 0, 7);
  std::vector<float> values = normal_vector(random, 12);
  OwnedMatrix x = normal_matrix(random, 3, 7), dx(3, 7), y(3, 5);
  const OwnedMatrix dy = normal_matrix(random, 3, 5);
  const auto loss = [&] {
    y = OwnedMatrix(3, 5);
    reference::sparse_forward(all, values, x, y);
    return testing::inner_product(y, dy);
  };
  std::vector<float> d_values(12);
  reference::sparse_backward(all, values, x, dy, d_values, dx);
  EXPECT_TRUE(testing::near(dx, finite_differences(x, loss), 1e-3));
  EXPECT_TRUE(testing::near(as_row(d_values), testing::finite_differences(Matrix(values.data(), 1, 12), loss), 1e-3));
}

TEST(Sparse, BitsDoNotDependOnThreads) {
  RandomStream random(3);
  const RandomPlaces sparse(random, 300, 200, 4000);
  const SparsePlaces all = sparse.part(0, 300, 0, 200);
  const std::vector<float> values = normal_vector(random, 4000);
  const OwnedMatrix x = normal_matrix(random, 70, 200), dy = normal_matrix(random, 70, 300);
  OwnedMatrix y(70, 300), y_many(70, 300), dx(70, 200), dx_many(70, 200);
  std::vector<float> d(4000), d_many(4000);
  const auto run = [&](Matrix to, std::span<float> d_values, Matrix d_x) {
    cpu::sparse_forward(all, values, x, to);
    cpu::sparse_backward(all, values, x, dy, d_values, d_x);
  };
  with_threads(1, [&] { run(y, d, dx); });
  with_threads(3, [&] { run(y_many, d_many, dx_many); });
  EXPECT_TRUE(same_bits(y_many, y) && same_bits(dx_many, dx) && same_bits(as_row(d_many), as_row(d)));
}

}  // namespace
}  // namespace braid::kernels

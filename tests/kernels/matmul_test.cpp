#include "kernels/matmul.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "testing.h"

namespace braid::kernels {
namespace {

using testing::normal_matrix;
using testing::OwnedMatrix;
using testing::same_bits;
using testing::with_threads;

constexpr Transpose kBoth[] = {Transpose::no, Transpose::yes};

OwnedMatrix operand(RandomStream& random, std::int64_t rows, std::int64_t columns, Transpose transpose,
                    std::int64_t gap) {
  return transpose == Transpose::no ? normal_matrix(random, rows, columns, gap)
                                    : normal_matrix(random, columns, rows, gap);
}

TEST(Matmul, GivesThePlainProduct) {
  const float a_numbers[] = {1, 2, 3, 4, 5, 6};
  const float b_numbers[] = {1, 0, -1, 2, 1, 1};
  const ConstMatrix a(a_numbers, 2, 3), b(b_numbers, 3, 2);
  const float expected[] = {2 * 2, 2 * 7, 2 * 5, 2 * 16};
  for (const auto& matmul : {reference::matmul, cpu::matmul}) {
    OwnedMatrix c(2, 2);
    matmul(2.0F, a, Transpose::no, b, Transpose::no, 0.0F, c);
    EXPECT_TRUE(same_bits(c, ConstMatrix(expected, 2, 2)));
  }
}

RC_GTEST_PROP(Matmul, EqualsItsReference, ()) {
  const std::int64_t m = *rc::gen::inRange(1, 220), n = *rc::gen::inRange(1, 150), k = *rc::gen::inRange(1, 600);
  const Transpose a_transpose = *rc::gen::element(Transpose::no, Transpose::yes);
  const Transpose b_transpose = *rc::gen::element(Transpose::no, Transpose::yes);
  const float alpha = *rc::gen::element(1.0F, 0.25F), beta = *rc::gen::element(0.0F, 1.0F);
  const std::int64_t gap = *rc::gen::element(0, 3, 64);
  RandomStream random(*rc::gen::arbitrary<std::uint32_t>());
  const OwnedMatrix a = operand(random, m, k, a_transpose, gap), b = operand(random, k, n, b_transpose, gap);
  OwnedMatrix c = normal_matrix(random, m, n, gap), expected = c;
  reference::matmul(alpha, a, a_transpose, b, b_transpose, beta, expected);
  cpu::matmul(alpha, a, a_transpose, b, b_transpose, beta, c);
  RC_ASSERT(testing::near(c, expected, 2e-6));
  RC_ASSERT(c.guards_untouched());
}

/// A table of products of unlike sizes gives each to the bit, on any number of threads.
RC_GTEST_PROP(Matmul, AGroupIsItsProductsOneByOne, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 12);
  RandomStream random(*rc::gen::arbitrary<std::uint32_t>());
  std::vector<OwnedMatrix> a, b, c, expected;
  std::vector<MatmulCall> calls;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t m = *rc::gen::inRange(0, 130), n = *rc::gen::inRange(1, 150), k = *rc::gen::inRange(0, 90);
    MatmulCall& call = calls.emplace_back();
    call.alpha = *rc::gen::element(1.0F, 0.25F), call.beta = *rc::gen::element(0.0F, 1.0F);
    call.a_transpose = *rc::gen::element(Transpose::no, Transpose::yes);
    call.b_transpose = *rc::gen::element(Transpose::no, Transpose::yes);
    a.push_back(operand(random, m, k, call.a_transpose, 3)), b.push_back(operand(random, k, n, call.b_transpose, 0));
    c.push_back(normal_matrix(random, m, n, 3)), expected.push_back(c.back());
    cpu::matmul(call.alpha, a.back(), call.a_transpose, b.back(), call.b_transpose, call.beta, expected.back());
  }
  for (std::size_t i = 0; i < count; ++i) calls[i].a = a[i], calls[i].b = b[i], calls[i].c = c[i];
  const std::vector<OwnedMatrix> before = c;
  for (const int threads : {1, 2, 3}) {
    for (std::size_t i = 0; i < count; ++i) c[i] = before[i], calls[i].c = c[i];
    with_threads(threads, [&] { cpu::matmul_group(calls); });
    for (std::size_t i = 0; i < count; ++i) {
      RC_ASSERT(same_bits(c[i], expected[i]));
      RC_ASSERT(c[i].guards_untouched());
    }
  }
}

TEST(Matmul, BetaZeroNeverReadsC) {
  RandomStream random(1);
  const OwnedMatrix a = normal_matrix(random, 5, 7), b = normal_matrix(random, 7, 19);
  for (const auto& matmul : {reference::matmul, cpu::matmul}) {
    OwnedMatrix c(5, 19), spoilt(5, 19);
    for (std::int64_t row = 0; row < 5; ++row) std::fill_n(spoilt.view().row(row), 19, std::nanf(""));
    matmul(1.0F, a, Transpose::no, b, Transpose::no, 0.0F, c);
    matmul(1.0F, a, Transpose::no, b, Transpose::no, 0.0F, spoilt);
    EXPECT_TRUE(same_bits(spoilt, c));
  }
}

TEST(Matmul, EmptyDepthCountsAsZeros) {
  RandomStream random(2);
  const ConstMatrix a(nullptr, 3, 0), b(nullptr, 0, 4);
  for (const auto& matmul : {reference::matmul, cpu::matmul}) {
    OwnedMatrix c = normal_matrix(random, 3, 4);
    const OwnedMatrix before = c;
    matmul(1.0F, a, Transpose::no, b, Transpose::no, 1.0F, c);
    EXPECT_TRUE(same_bits(c, before));
    matmul(1.0F, a, Transpose::no, b, Transpose::no, 0.0F, c);
    EXPECT_TRUE(same_bits(c, OwnedMatrix(3, 4)));
  }
}

TEST(Matmul, EmptyResultDoesNothing) {
  RandomStream random(3);
  const OwnedMatrix a = normal_matrix(random, 3, 4);
  cpu::matmul(1.0F, ConstMatrix(nullptr, 0, 4), Transpose::no, a, Transpose::yes, 0.0F, Matrix(nullptr, 0, 3));
  cpu::matmul(1.0F, a, Transpose::no, ConstMatrix(nullptr, 4, 0), Transpose::no, 0.0F, Matrix(nullptr, 3, 0));
}

TEST(Matmul, RowsDoNotDependOnTheOtherRows) {
  RandomStream random(4);
  constexpr std::int64_t kRows = 301, kDepth = 333;
  for (const std::int64_t columns : {1, 8, 16, 37, 64, 200}) {
    for (const Transpose b_transpose : kBoth) {
      const OwnedMatrix a = normal_matrix(random, kRows, kDepth), b = operand(random, kDepth, columns, b_transpose, 3);
      const OwnedMatrix before = normal_matrix(random, kRows, columns);
      OwnedMatrix all = before;
      cpu::matmul(0.5F, a, Transpose::no, b, b_transpose, 1.0F, all);
      for (const auto& [first, last] : {std::pair<std::int64_t, std::int64_t>{0, 1}, {300, 301}, {17, 19}, {5, 260}}) {
        OwnedMatrix some = before;
        const Matrix rows = some.view().row_range(first, last);
        cpu::matmul(0.5F, a.view().row_range(first, last), Transpose::no, b, b_transpose, 1.0F, rows);
        EXPECT_TRUE(same_bits(rows, all.view().row_range(first, last))) << columns << " columns, rows from " << first;
      }
    }
  }
}

TEST(Matmul, BitsDoNotDependOnThreadsOrStrides) {
  RandomStream random(5);
  for (const std::int64_t depth : {37, 4100}) {
    for (const Transpose a_transpose : kBoth) {
      for (const Transpose b_transpose : kBoth) {
        const OwnedMatrix a = operand(random, 70, depth, a_transpose, 0),
                          b = operand(random, depth, 130, b_transpose, 0);
        OwnedMatrix a_apart(a.rows(), a.columns(), 27, 2), b_apart(b.rows(), b.columns(), 5, 0);
        for (std::int64_t row = 0; row < a.rows(); ++row) {
          std::copy_n(a.view().row(row), a.columns(), a_apart.view().row(row));
        }
        for (std::int64_t row = 0; row < b.rows(); ++row) {
          std::copy_n(b.view().row(row), b.columns(), b_apart.view().row(row));
        }
        OwnedMatrix alone(70, 130);
        with_threads(1, [&] { cpu::matmul(0.7F, a, a_transpose, b, b_transpose, 0.0F, alone); });
        for (const int threads : {1, 2, 3, 8}) {
          OwnedMatrix together(70, 130, 9, 3);
          with_threads(threads, [&] { cpu::matmul(0.7F, a_apart, a_transpose, b_apart, b_transpose, 0.0F, together); });
          EXPECT_TRUE(same_bits(together, alone)) << threads << " threads, depth " << depth;
        }
      }
    }
  }
}

}  // namespace
}  // namespace braid::kernels

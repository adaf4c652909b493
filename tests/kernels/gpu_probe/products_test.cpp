#include "kernels/gpu_probe/products.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "kernels/gpu_probe/reference_product.h"

namespace braid::gpu_probe {
namespace {

using Matrix = std::vector<double>;

/// By rows, as networks store them; small whole numbers, so that sums are exact.
Matrix random_matrix(std::int64_t rows, std::int64_t columns) {
  Matrix matrix;
  for (const int number :
       *rc::gen::container<std::vector<int>>(static_cast<std::size_t>(rows * columns), rc::gen::inRange(-9, 10)))
    matrix.push_back(number);
  return matrix;
}

/// The same product in the network's own terms: sums over `terms` of a(row, term) · b(term, column), by rows.
template <typename A, typename B>
Matrix sums(std::int64_t rows, std::int64_t columns, std::int64_t terms, const A& a, const B& b) {
  Matrix result;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      double sum = 0;
      for (std::int64_t term = 0; term < terms; ++term) sum += a(row, term) * b(term, column);
      result.push_back(sum);
    }
  }
  return result;
}

RC_GTEST_PROP(Products, LayoutsMultiplyWhatTheirPassSays, ()) {
  const std::int64_t in = *rc::gen::inRange(1, 7), out = *rc::gen::inRange(1, 7), rows = *rc::gen::inRange(1, 7);
  const Matrix x = random_matrix(rows, in), w = random_matrix(out, in), dy = random_matrix(rows, out);
  const auto at = [](const Matrix& matrix, std::int64_t columns, std::int64_t row, std::int64_t column) {
    return matrix[static_cast<std::size_t>(row * columns + column)];
  };
  const auto layout = [&](const char* pass) { return product_layout({"", "linear", pass, {in, out}, rows}); };
  const Matrix y = sums(
      rows, out, in, [&](auto r, auto i) { return at(x, in, r, i); }, [&](auto i, auto o) { return at(w, in, o, i); });
  RC_ASSERT(reference_product(layout("forward"), w, x) == y);
  const Matrix dx = sums(
      rows, in, out, [&](auto r, auto o) { return at(dy, out, r, o); },
      [&](auto o, auto i) { return at(w, in, o, i); });
  RC_ASSERT(reference_product(layout("backward"), w, dy) == dx);
  const Matrix dw = sums(
      out, in, rows, [&](auto o, auto r) { return at(dy, out, r, o); },
      [&](auto r, auto i) { return at(x, in, r, i); });
  RC_ASSERT(reference_product(layout("parameters"), x, dy) == dw);
}

RC_GTEST_PROP(Products, EveryPassDoesTheSameWorkOnItsOwnOperands, ()) {
  const std::int64_t in = *rc::gen::inRange(1, 9000), out = *rc::gen::inRange(1, 9000),
                     rows = *rc::gen::inRange(1, 9000);
  const std::int64_t x = 2 * rows * in, w = 2 * in * out, y = 2 * rows * out;
  const auto expect = [&](const char* pass, std::int64_t cold, std::int64_t input, std::int64_t output) {
    const Point point{"", "linear", pass, {in, out}, rows};
    const ProductLayout layout = product_layout(point);
    RC_ASSERT(2.0 * static_cast<double>(layout.m) * static_cast<double>(layout.n) * static_cast<double>(layout.k) ==
              product_flops(point));
    const OperandBytes bytes = operand_bytes(point);
    RC_ASSERT(bytes.cold == cold);
    RC_ASSERT(bytes.input == input);
    RC_ASSERT(bytes.output == output);
  };
  expect("forward", w, x, y);
  expect("backward", w, y, x);
  expect("parameters", x, y, w);
}

TEST(Products, OtherOperandsAddUpToTheTraffic) {
  const OperandBytes copy = operand_bytes({"", "copy", "forward", {}, 4096});
  EXPECT_EQ(copy.cold + copy.input + copy.output, 4096);
  const OperandBytes addition = operand_bytes({"", "residual", "forward", {4096}, 64});
  EXPECT_EQ(addition.cold + addition.input + addition.output, 3 * 2 * 4096 * 64);
}

TEST(Products, ReadBf16) {
  EXPECT_EQ(from_bf16(0x3f80), 1.0);
  EXPECT_EQ(from_bf16(0xbf00), -0.5);
  EXPECT_EQ(from_bf16(0x4049), 3.140625);
}

}  // namespace
}  // namespace braid::gpu_probe

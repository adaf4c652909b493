#include "kernels/elementwise.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/cpu/rows.h"

namespace braid::kernels::cpu {

void add(ConstMatrix x, Matrix y) {
  BRAID_CHECK(x.rows == y.rows && x.columns == y.columns, "[{}, {}] + [{}, {}]", y.rows, y.columns, x.rows, x.columns);
  for_rows(y.rows, y.columns, [&](std::int64_t t) {
    const float* from = x.row(t);
    float* to = y.row(t);
#pragma omp simd
    for (std::int64_t i = 0; i < y.columns; ++i) to[i] += from[i];
  });
}

void copy(ConstMatrix x, Matrix y) {
  BRAID_CHECK(x.rows == y.rows && x.columns == y.columns, "[{}, {}] to [{}, {}]", x.rows, x.columns, y.rows, y.columns);
  for_rows(y.rows, y.columns, [&](std::int64_t t) { std::copy_n(x.row(t), y.columns, y.row(t)); });
}

void fill(float value, Matrix y) {
  for_rows(y.rows, y.columns, [&](std::int64_t t) { std::fill_n(y.row(t), y.columns, value); });
}

void scale(float factor, ConstMatrix x, bool accumulate, Matrix y) {
  BRAID_CHECK(x.rows == y.rows && x.columns == y.columns, "[{}, {}] to [{}, {}]", x.rows, x.columns, y.rows, y.columns);
  for_rows(y.rows, y.columns, [&](std::int64_t t) {
    const float* from = x.row(t);
    float* to = y.row(t);
    if (accumulate) {
#pragma omp simd
      for (std::int64_t i = 0; i < y.columns; ++i) to[i] += factor * from[i];
    } else {
#pragma omp simd
      for (std::int64_t i = 0; i < y.columns; ++i) to[i] = factor * from[i];
    }
  });
}

namespace {

double squared_norm(ConstVector x) {
  constexpr std::int64_t kSums = 16;
  const auto count = static_cast<std::int64_t>(x.size());
  std::vector<double> totals(static_cast<std::size_t>((count + kPiece - 1) / kPiece));
  for_pieces(count, 1, [&](std::int64_t first, std::int64_t last) {
    const float* numbers = x.data();
    double sums[kSums] = {};
    std::int64_t i = first;
    for (; i + kSums <= last; i += kSums) {
      for (std::int64_t j = 0; j < kSums; ++j) sums[j] += static_cast<double>(numbers[i + j]) * numbers[i + j];
    }
    for (; i < last; ++i) sums[i % kSums] += static_cast<double>(numbers[i]) * numbers[i];
    totals[static_cast<std::size_t>(first / kPiece)] = std::accumulate(std::begin(sums), std::end(sums), 0.0);
  });
  return std::accumulate(totals.begin(), totals.end(), 0.0);
}

}  // namespace

void squared_norms(std::span<const ConstVector> parts, BasicVector<double> sums) {
  BRAID_CHECK(parts.size() == sums.size(), "{} sums of {} parts", sums.size(), parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) sums[i] = squared_norm(parts[i]);
}

}  // namespace braid::kernels::cpu

#include "kernels/outer_sums.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/scratch.h"

namespace braid::kernels::cpu {
namespace {

/// Columns whose sums stay in registers while all rows are added.
constexpr std::int64_t kColumns = 8;
/// Rows of `a` that are read at once, as columns.
constexpr std::int64_t kTokens = 256;

/// Of kColumns columns; the terms of each sum are `scaled` [count] times a column of b.
void add_columns(const float* scaled, std::int64_t count, const float* b, std::int64_t stride, double* high,
                 double* low) {
  double highs[kColumns], lows[kColumns];
  std::copy_n(high, kColumns, highs);
  std::copy_n(low, kColumns, lows);
  for (std::int64_t t = 0; t < count; ++t) {
    const double factor = scaled[t];
    for (std::int64_t j = 0; j < kColumns; ++j) add_exactly(factor * double{b[t * stride + j]}, highs[j], lows[j]);
  }
  std::copy_n(highs, kColumns, high);
  std::copy_n(lows, kColumns, low);
}

/// Of one row of the sums.
void add_row(const float* scaled, ConstMatrix b, double* high, double* low) {
  const std::int64_t whole = b.columns / kColumns * kColumns;
  for (std::int64_t j = 0; j < whole; j += kColumns)
    add_columns(scaled, b.rows, b.data + j, b.stride, high + j, low + j);
  for (std::int64_t j = whole; j < b.columns; ++j) {
    for (std::int64_t t = 0; t < b.rows; ++t) add_exactly(double{scaled[t]} * double{b.row(t)[j]}, high[j], low[j]);
  }
}

}  // namespace

/// Products are exact as doubles, so that it does not matter whether they are rounded before they are added.
void outer_sums(float alpha, ConstMatrix a, ConstMatrix b, ExactSums sums) {
  BRAID_CHECK(a.rows == b.rows && a.columns == sums.rows && b.columns == sums.columns, "[{}, {}]ᵀ [{}, {}] to [{}, {}]",
              a.rows, a.columns, b.rows, b.columns, sums.rows, sums.columns);
  for_rows(sums.rows, 4 * kCopies * a.rows * sums.columns, [&](std::int64_t i) {
    thread_local Scratch scratch;
    float* scaled = scratch.at_least(kTokens);
    for (std::int64_t first = 0; first < a.rows; first += kTokens) {
      const std::int64_t count = std::min(kTokens, a.rows - first);
      for (std::int64_t t = 0; t < count; ++t) scaled[t] = alpha * a.row(first + t)[i];
      add_row(scaled, b.row_range(first, first + count), sums.high + i * sums.stride, sums.low + i * sums.stride);
    }
  });
}

}  // namespace braid::kernels::cpu

#include "kernels/elementwise.h"

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

}  // namespace braid::kernels::cpu

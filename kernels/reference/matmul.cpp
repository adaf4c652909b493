#include "kernels/matmul.h"

#include <algorithm>
#include <vector>

namespace braid::kernels::reference {

/// Summed in double, in the order of K. op(b) is copied row by row, so that the innermost loop runs along its rows.
void matmul(float alpha, ConstMatrix a, Transpose a_transpose, ConstMatrix b, Transpose b_transpose, float beta,
            Matrix c) {
  const std::int64_t depth = a_transpose == Transpose::no ? a.columns : a.rows;
  std::vector<double> right;
  right.reserve(static_cast<std::size_t>(depth * c.columns));
  for (std::int64_t k = 0; k < depth; ++k) {
    for (std::int64_t j = 0; j < c.columns; ++j)
      right.push_back(b_transpose == Transpose::no ? b.row(k)[j] : b.row(j)[k]);
  }
  std::vector<double> sums(static_cast<std::size_t>(c.columns));
  for (std::int64_t i = 0; i < c.rows; ++i) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::int64_t k = 0; k < depth; ++k) {
      const double left = a_transpose == Transpose::no ? a.row(i)[k] : a.row(k)[i];
      const double* row = right.data() + k * c.columns;
      for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += left * row[j];
    }
    for (std::int64_t j = 0; j < c.columns; ++j) {
      const double before = beta == 0.0F ? 0.0 : static_cast<double>(beta) * c.row(i)[j];
      c.row(i)[j] = static_cast<float>(alpha * sums[static_cast<std::size_t>(j)] + before);
    }
  }
}

void matmul_group(std::span<const MatmulCall> calls) {
  for (const MatmulCall& call : calls)
    matmul(call.alpha, call.a, call.a_transpose, call.b, call.b_transpose, call.beta, call.c);
}

}  // namespace braid::kernels::reference

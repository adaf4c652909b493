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
  for (const MatmulCall& call : calls) {
    MatmulCall plain = call;
    std::vector<float> numbers;
    const auto rows_like = [&](ConstMatrix matrix) {
      numbers.resize(static_cast<std::size_t>(matrix.rows * matrix.columns));
      return Matrix(numbers.data(), matrix.rows, matrix.columns);
    };
    const auto dropped = [&](ConstMatrix matrix) {
      const Matrix rows = rows_like(matrix);
      dropout(call.drop, matrix, false, rows);
      return rows;
    };
    if (call.dropped == Dropped::a) plain.a = dropped(call.a);
    if (call.dropped == Dropped::b) plain.b = dropped(call.b);
    if (call.dropped == Dropped::sum) plain.c = rows_like(call.c), plain.beta = 0;
    matmul(plain.alpha, plain.a, plain.a_transpose, plain.b, plain.b_transpose, plain.beta, plain.c);
    if (call.dropped == Dropped::sum) dropout(call.drop, plain.c, call.beta != 0.0F, call.c);
  }
}

}  // namespace braid::kernels::reference

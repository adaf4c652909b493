#include "kernels/row_norms.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/rows.h"

namespace braid::kernels::cpu {

void low_rank_squares(float s, ConstMatrix b, ConstMatrix with_weight, ConstVector bias, ConstMatrix inner,
                      Vector squares) {
  BRAID_CHECK(with_weight.rows == b.columns && with_weight.columns == b.rows && inner.rows == b.columns &&
                  std::ssize(squares) == b.rows && (bias.empty() || std::ssize(bias) == b.rows),
              "squares of {} rows of rank {} from [{}, {}]", b.rows, b.columns, with_weight.rows, with_weight.columns);
  for_rows(b.rows, kCopies * b.columns * (b.columns + 1), [&](std::int64_t i) {
    const float* row = b.row(i);
    const double shift = bias.empty() ? 0.0 : bias[static_cast<std::size_t>(i)];
    double linear = 0, quadratic = 0;
    for (std::int64_t k = 0; k < b.columns; ++k) {
      linear += row[k] * (static_cast<double>(with_weight.row(k)[i]) - shift);
      double sum = 0;
      for (std::int64_t l = 0; l < b.columns; ++l) sum += static_cast<double>(row[l]) * inner.row(k)[l];
      quadratic += row[k] * sum;
    }
    squares[static_cast<std::size_t>(i)] += static_cast<float>(s * (2 * linear + s * quadratic));
  });
}

void inverse_roots(ConstVector squares, Vector roots) {
  BRAID_CHECK(squares.size() == roots.size(), "{} roots of {}", roots.size(), squares.size());
  for_pieces(std::ssize(squares), kCopies, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const auto place = static_cast<std::size_t>(i);
      roots[place] = 1.0F / std::sqrt(std::max(squares[place], 1e-30F));
    }
  });
}

}  // namespace braid::kernels::cpu

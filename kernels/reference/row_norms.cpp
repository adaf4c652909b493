#include "kernels/row_norms.h"

#include <algorithm>
#include <cmath>

namespace braid::kernels::reference {

void low_rank_squares(float s, ConstMatrix b, ConstMatrix with_weight, ConstVector bias, ConstMatrix inner,
                      Vector squares) {
  for (std::int64_t i = 0; i < b.rows; ++i) {
    const auto place = static_cast<std::size_t>(i);
    double sum = squares[place];
    for (std::int64_t k = 0; k < b.columns; ++k) {
      const double with_w = static_cast<double>(with_weight.row(k)[i]) - (bias.empty() ? 0.0 : bias[place]);
      sum += 2.0 * s * b.row(i)[k] * with_w;
      for (std::int64_t l = 0; l < b.columns; ++l)
        sum += static_cast<double>(s) * s * b.row(i)[k] * b.row(i)[l] * inner.row(k)[l];
    }
    squares[place] = static_cast<float>(sum);
  }
}

void inverse_roots(ConstVector squares, Vector roots) {
  for (std::size_t i = 0; i < squares.size(); ++i) roots[i] = 1.0F / std::sqrt(std::max(squares[i], 1e-30F));
}

}  // namespace braid::kernels::reference

#include "kernels/sparse.h"

namespace braid::kernels::reference {

void sparse_forward(const SparsePlaces& places, ConstVector values, ConstMatrix x, Matrix y) {
  for (std::int64_t t = 0; t < y.rows; ++t) {
    for (std::size_t k = 0; k < values.size(); ++k) {
      if (!places.counts(k)) continue;
      y.row(t)[places.rows[k] - places.first_row] += values[k] * x.row(t)[places.columns[k] - places.first_column];
    }
  }
}

void sparse_backward(const SparsePlaces& places, ConstVector values, ConstMatrix x, ConstMatrix dy, Vector d_values,
                     Matrix dx) {
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (!places.counts(k)) continue;
    const std::int64_t row = places.rows[k] - places.first_row, column = places.columns[k] - places.first_column;
    double sum = 0.0;
    for (std::int64_t t = 0; t < dy.rows; ++t) sum += static_cast<double>(dy.row(t)[row]) * x.row(t)[column];
    d_values[k] = static_cast<float>(d_values[k] + sum);
    for (std::int64_t t = 0; t < dx.rows; ++t) dx.row(t)[column] += values[k] * dy.row(t)[row];
  }
}

}  // namespace braid::kernels::reference

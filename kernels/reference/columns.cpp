#include "kernels/columns.h"

namespace braid::kernels::reference {

void scale_columns(ConstVector scale, ConstMatrix x, bool accumulate, Matrix y) {
  for (std::int64_t t = 0; t < y.rows; ++t) {
    for (std::int64_t i = 0; i < y.columns; ++i)
      y.row(t)[i] = scale[static_cast<std::size_t>(i)] * x.row(t)[i] + (accumulate ? y.row(t)[i] : 0.0F);
  }
}

void add_row(float factor, ConstVector row, Matrix y) {
  for (std::int64_t t = 0; t < y.rows; ++t) {
    for (std::int64_t i = 0; i < y.columns; ++i) y.row(t)[i] += factor * row[static_cast<std::size_t>(i)];
  }
}

void sum_columns(float factor, ConstMatrix a, ConstMatrix b, Vector sums) {
  for (std::int64_t i = 0; i < a.columns; ++i) {
    double sum = 0.0;
    for (std::int64_t t = 0; t < a.rows; ++t) sum += static_cast<double>(a.row(t)[i]) * (b.rows > 0 ? b.row(t)[i] : 1);
    float& to = sums[static_cast<std::size_t>(i)];
    to = static_cast<float>(to + factor * sum);
  }
}

}  // namespace braid::kernels::reference

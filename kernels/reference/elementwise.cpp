#include "kernels/elementwise.h"

namespace braid::kernels::reference {

void add(ConstMatrix x, Matrix y) {
  for (std::int64_t t = 0; t < y.rows; ++t) {
    for (std::int64_t i = 0; i < y.columns; ++i) y.row(t)[i] += x.row(t)[i];
  }
}

void copy(ConstMatrix x, Matrix y) {
  for (std::int64_t t = 0; t < y.rows; ++t) {
    for (std::int64_t i = 0; i < y.columns; ++i) y.row(t)[i] = x.row(t)[i];
  }
}

void fill(float value, Matrix y) {
  for (std::int64_t t = 0; t < y.rows; ++t) {
    for (std::int64_t i = 0; i < y.columns; ++i) y.row(t)[i] = value;
  }
}

void scale(float factor, ConstMatrix x, bool accumulate, Matrix y) {
  for (std::int64_t t = 0; t < y.rows; ++t) {
    for (std::int64_t i = 0; i < y.columns; ++i) y.row(t)[i] = factor * x.row(t)[i] + (accumulate ? y.row(t)[i] : 0.0F);
  }
}

void squared_norms(std::span<const ConstVector> parts, BasicVector<double> sums) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    sums[i] = 0.0;
    for (const float value : parts[i]) sums[i] += static_cast<double>(value) * value;
  }
}

}  // namespace braid::kernels::reference

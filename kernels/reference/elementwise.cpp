#include "kernels/elementwise.h"

namespace braid::kernels::reference {

void add(ConstMatrix x, Matrix y) {
  for (std::int64_t t = 0; t < y.rows; ++t) {
    for (std::int64_t i = 0; i < y.columns; ++i) y.row(t)[i] += x.row(t)[i];
  }
}

double squared_norm(ConstVector x) {
  double sum = 0.0;
  for (const float value : x) sum += static_cast<double>(value) * value;
  return sum;
}

}  // namespace braid::kernels::reference

#include "kernels/linear.h"

#include "kernels/matmul.h"

namespace braid::kernels::reference {

void linear_forward(ConstMatrix x, ConstMatrix weight, std::span<const float> bias, Matrix y) {
  matmul(1.0F, x, Transpose::no, weight, Transpose::yes, 0.0F, y);
  if (bias.empty()) return;
  for (std::int64_t t = 0; t < y.rows; ++t) {
    for (std::int64_t i = 0; i < y.columns; ++i) y.row(t)[i] += bias[static_cast<std::size_t>(i)];
  }
}

void linear_backward(ConstMatrix dy, ConstMatrix weight, Matrix dx) {
  matmul(1.0F, dy, Transpose::no, weight, Transpose::no, 0.0F, dx);
}

}  // namespace braid::kernels::reference

#include "kernels/matmul.h"

namespace braid::kernels::reference {

void matmul(float alpha, ConstMatrix a, Transpose a_transpose, ConstMatrix b, Transpose b_transpose, float beta,
            Matrix c) {
  const std::int64_t depth = a_transpose == Transpose::no ? a.columns : a.rows;
  for (std::int64_t i = 0; i < c.rows; ++i) {
    for (std::int64_t j = 0; j < c.columns; ++j) {
      double sum = 0.0;
      for (std::int64_t k = 0; k < depth; ++k) {
        const float left = a_transpose == Transpose::no ? a.row(i)[k] : a.row(k)[i];
        const float right = b_transpose == Transpose::no ? b.row(k)[j] : b.row(j)[k];
        sum += static_cast<double>(left) * right;
      }
      const double before = beta == 0.0F ? 0.0 : static_cast<double>(beta) * c.row(i)[j];
      c.row(i)[j] = static_cast<float>(alpha * sum + before);
    }
  }
}

}  // namespace braid::kernels::reference

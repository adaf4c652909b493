#include "kernels/gpu_probe/reference_product.h"

#include <bit>

namespace braid::gpu_probe {

std::vector<double> reference_product(const ProductLayout& layout, const std::vector<double>& a,
                                      const std::vector<double>& b) {
  const auto at = [](const std::vector<double>& matrix, std::int64_t rows, bool transposed, std::int64_t row,
                     std::int64_t column) {
    return matrix[static_cast<std::size_t>(transposed ? row * rows + column : column * rows + row)];
  };
  std::vector<double> d;
  for (std::int64_t column = 0; column < layout.n; ++column) {
    for (std::int64_t row = 0; row < layout.m; ++row) {
      double sum = 0;
      for (std::int64_t i = 0; i < layout.k; ++i) {
        sum += at(a, layout.a_rows, layout.transpose_a, row, i) * at(b, layout.b_rows, layout.transpose_b, i, column);
      }
      d.push_back(sum);
    }
  }
  return d;
}

double from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace braid::gpu_probe

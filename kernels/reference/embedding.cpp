#include "kernels/embedding.h"

namespace braid::kernels::reference {

void embedding_forward(ConstMatrix table, std::span<const std::int32_t> tokens, bool accumulate, Matrix y) {
  for (std::int64_t t = 0; t < y.rows; ++t) {
    const float* row = table.row(tokens[static_cast<std::size_t>(t)]);
    for (std::int64_t i = 0; i < y.columns; ++i) y.row(t)[i] = row[i] + (accumulate ? y.row(t)[i] : 0.0F);
  }
}

void scatter_rows(ConstMatrix x, std::span<const std::int32_t> rows, Matrix y) {
  for (std::int64_t t = 0; t < x.rows; ++t) {
    for (std::int64_t i = 0; i < x.columns; ++i) y.row(rows[static_cast<std::size_t>(t)])[i] = x.row(t)[i];
  }
}

}  // namespace braid::kernels::reference

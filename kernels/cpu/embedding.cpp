#include "kernels/embedding.h"

#include "kernels/cpu/lanes.h"
#include "kernels/cpu/rows.h"

namespace braid::kernels::cpu {

void embedding_forward(ConstMatrix table, std::span<const std::int32_t> tokens, bool accumulate, Matrix y) {
  BRAID_CHECK(std::ssize(tokens) == y.rows && table.columns == y.columns, "{} tokens, rows of {}, to [{}, {}]",
              tokens.size(), table.columns, y.rows, y.columns);
  for_rows(y.rows, kCopies * y.columns, [&](std::int64_t t) {
    const std::int32_t token = tokens[static_cast<std::size_t>(t)];
    BRAID_CHECK(0 <= token && token < table.rows, "token {} of {}", token, table.rows);
    const float* row = table.row(token);
    float* to = y.row(t);
    if (!accumulate) {
      std::copy_n(row, y.columns, to);
      return;
    }
    for_lanes(y.columns, [&](std::int64_t i, std::int64_t count) {
      store(to + i, load(to + i, count) + load(row + i, count), count);
    });
  });
}

void scatter_rows(ConstMatrix x, std::span<const std::int32_t> rows, Matrix y) {
  BRAID_CHECK(std::ssize(rows) == x.rows && x.columns == y.columns, "{} places of [{}, {}] in rows of {}", rows.size(),
              x.rows, x.columns, y.columns);
  for_rows(x.rows, x.columns, [&](std::int64_t t) {
    const std::int32_t row = rows[static_cast<std::size_t>(t)];
    BRAID_CHECK(0 <= row && row < y.rows, "row {} of {}", row, y.rows);
    std::copy_n(x.row(t), x.columns, y.row(row));
  });
}

}  // namespace braid::kernels::cpu

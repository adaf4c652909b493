#include "kernels/cuda/simt.h"
#include "kernels/embedding.h"

namespace braid::kernels::cuda {
namespace {

template <typename X, typename Y>
struct GatherNumber {
  View<const X> table;
  const std::int32_t* rows;
  View<Y> y;
  bool accumulate;
  __device__ void operator()(std::int64_t row, std::int64_t column) const {
    const float number = table(rows[row], column);
    y.set(row, column, accumulate ? y(row, column) + number : number);
  }
};

template <typename X, typename Y>
struct ScatterNumber {
  View<const X> x;
  const std::int32_t* rows;
  View<Y> y;
  __device__ void operator()(std::int64_t row, std::int64_t column) const { y.set(rows[row], column, x(row, column)); }
};

/// The host knows them, so that no kernel need look.
void check_rows(std::span<const std::int32_t> rows, std::int64_t count) {
  for (const std::int32_t row : rows) BRAID_CHECK(0 <= row && row < count, "row {} of {}", row, count);
}

}  // namespace

void embedding_forward(ConstMatrix table, std::span<const std::int32_t> tokens, bool accumulate, Matrix y) {
  BRAID_CHECK(std::ssize(tokens) == y.rows && table.columns == y.columns, "{} tokens, rows of {}, to [{}, {}]",
              tokens.size(), table.columns, y.rows, y.columns);
  check_rows(tokens, table.rows);
  const Numbers<std::int32_t> rows(tokens);
  with_type(table.type, [&]<typename X>(X) {
    with_type(y.type, [&]<typename Y>(Y) {
      for_each(y.rows, y.columns, GatherNumber<X, Y>{view<const X>(table), rows.data(), view<Y>(y), accumulate});
    });
  });
}

void scatter_rows(ConstMatrix x, std::span<const std::int32_t> rows, Matrix y) {
  BRAID_CHECK(std::ssize(rows) == x.rows && x.columns == y.columns, "{} places of [{}, {}] in rows of {}", rows.size(),
              x.rows, x.columns, y.columns);
  check_rows(rows, y.rows);
  const Numbers<std::int32_t> places(rows);
  with_type(x.type, [&]<typename X>(X) {
    with_type(y.type, [&]<typename Y>(Y) {
      for_each(x.rows, x.columns, ScatterNumber<X, Y>{view<const X>(x), places.data(), view<Y>(y)});
    });
  });
}

}  // namespace braid::kernels::cuda

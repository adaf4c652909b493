#include "kernels/cuda/simt.h"
#include "kernels/sparse.h"

namespace braid::kernels::cuda {
namespace {

/// SparsePlaces as kernels are given them.
struct Places {
  const std::int32_t *rows, *columns;
  std::int64_t count, first_row, last_row, first_column, last_column;

  __device__ bool counts(std::int64_t k) const {
    return first_row <= rows[k] && rows[k] < last_row && first_column <= columns[k] && columns[k] < last_column;
  }
  /// The first number that stands in that row or below it: rows are ascending.
  __device__ std::int64_t lower_bound(std::int64_t row) const {
    std::int64_t first = 0, last = count;
    while (first < last) {
      const std::int64_t middle = (first + last) / 2;
      if (rows[middle] < row) {
        first = middle + 1;
      } else {
        last = middle;
      }
    }
    return first;
  }
};

template <typename Number>
struct SparseRow {
  Places places;
  const float* values;
  View<const Number> x;
  View<Number> y;
  __device__ void operator()(std::int64_t token, std::int64_t row) const {
    const std::int64_t last = places.lower_bound(places.first_row + row + 1);
    float sum = 0;
    for (std::int64_t k = places.lower_bound(places.first_row + row); k < last; ++k)
      if (places.counts(k)) sum += values[k] * x(token, places.columns[k] - places.first_column);
    y.add(token, row, sum);
  }
};

/// A number of Δ a thread, tokens in their order.
template <typename Number>
struct SparseGradient {
  Places places;
  View<const Number> x, dy;
  float* d_values;
  __device__ void operator()(std::int64_t /*row*/, std::int64_t k) const {
    if (!places.counts(k)) return;
    float sum = 0;
    for (std::int64_t token = 0; token < x.rows; ++token)
      sum += dy(token, places.rows[k] - places.first_row) * x(token, places.columns[k] - places.first_column);
    d_values[k] += sum;
  }
};

/// A token a thread, which adds to its own row alone.
template <typename Number>
struct SparseInput {
  Places places;
  const float* values;
  View<const Number> dy;
  View<Number> dx;
  __device__ void operator()(std::int64_t /*row*/, std::int64_t token) const {
    for (std::int64_t k = 0; k < places.count; ++k)
      if (places.counts(k))
        dx.add(token, places.columns[k] - places.first_column,
               values[k] * dy(token, places.rows[k] - places.first_row));
  }
};

Places on_device(const SparsePlaces& places) {
  return {places.rows.data(), places.columns.data(), std::ssize(places.rows), places.first_row,
          places.last_row,    places.first_column,   places.last_column};
}

}  // namespace

void sparse_forward(const SparsePlaces& places, ConstVector values, ConstMatrix x, Matrix y) {
  with_type(x.type, [&]<typename Number>(Number) {
    for_each(y.rows, y.columns,
             SparseRow<Number>{on_device(places), values.data(), view<const Number>(x), view<Number>(y)});
  });
}

void sparse_backward(const SparsePlaces& places, ConstVector values, ConstMatrix x, ConstMatrix dy, Vector d_values,
                     Matrix dx) {
  with_type(x.type, [&]<typename Number>(Number) {
    for_each(1, std::ssize(values),
             SparseGradient<Number>{on_device(places), view<const Number>(x), view<const Number>(dy), d_values.data()});
    if (dx.rows > 0)
      for_each(1, dx.rows,
               SparseInput<Number>{on_device(places), values.data(), view<const Number>(dy), view<Number>(dx)});
  });
}

}  // namespace braid::kernels::cuda

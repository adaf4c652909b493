#include "kernels/columns.h"
#include "kernels/cuda/simt.h"

namespace braid::kernels::cuda {
namespace {

template <typename X, typename Y>
struct ScaleColumn {
  const float* factors;
  View<const X> x;
  View<Y> y;
  bool accumulate;
  __device__ void operator()(std::int64_t row, std::int64_t column) const {
    const float number = factors[column] * x(row, column);
    y.set(row, column, accumulate ? y(row, column) + number : number);
  }
};

template <typename Y>
struct AddToRow {
  const float* row_numbers;
  float factor;
  View<Y> y;
  __device__ void operator()(std::int64_t row, std::int64_t column) const {
    y.add(row, column, factor * row_numbers[column]);
  }
};

/// Columns of a block, a lane each, of a part of the rows; its warps share those out. `sums` are [parts, columns].
template <typename A, typename B>
__global__ void sum_columns_kernel(std::int64_t rows_each, View<const A> a, View<const B> b, float* sums) {
  float* parts = shared_memory<float>();  // [warps, kWarp]
  const std::int64_t first = blockIdx.y * rows_each, last = first + rows_each < a.rows ? first + rows_each : a.rows;
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  const std::int64_t column = std::int64_t{blockIdx.x} * kWarp + lane;
  float sum = 0;
  if (column < a.columns) {
    for (std::int64_t row = first + warp; row < last; row += warps)
      sum += a(row, column) * (b.rows > 0 ? b(row, column) : 1.0F);
  }
  parts[threadIdx.x] = sum;
  __syncthreads();
  if (warp > 0 || column >= a.columns) return;
  for (unsigned other = 1; other < warps; ++other) sum += parts[other * kWarp + lane];
  sums[blockIdx.y * a.columns + column] = sum;
}

/// Adds what the parts have, one after another.
struct AddParts {
  const float* parts;
  std::int64_t count, columns;
  float factor;
  float* sums;
  __device__ void operator()(std::int64_t /*row*/, std::int64_t column) const {
    float sum = 0;
    for (std::int64_t part = 0; part < count; ++part) sum += parts[part * columns + column];
    sums[column] += factor * sum;
  }
};

}  // namespace

void scale_columns(ConstVector scale, ConstMatrix x, bool accumulate, Matrix y) {
  BRAID_CHECK(std::ssize(scale) == y.columns && x.rows == y.rows && x.columns == y.columns, "{} scales, [{}, {}] to {}",
              scale.size(), x.rows, x.columns, y.columns);
  with_type(x.type, [&]<typename X>(X) {
    with_type(y.type, [&]<typename Y>(Y) {
      for_each(y.rows, y.columns, ScaleColumn<X, Y>{scale.data(), view<const X>(x), view<Y>(y), accumulate});
    });
  });
}

void add_row(float factor, ConstVector row, Matrix y) {
  BRAID_CHECK(std::ssize(row) == y.columns, "{} numbers to rows of {}", row.size(), y.columns);
  with_type(y.type, [&]<typename Y>(Y) { for_each(y.rows, y.columns, AddToRow<Y>{row.data(), factor, view<Y>(y)}); });
}

void sum_columns(float factor, ConstMatrix a, ConstMatrix b, Vector sums) {
  BRAID_CHECK(std::ssize(sums) == a.columns && (b.rows == 0 || (b.rows == a.rows && b.columns == a.columns)),
              "{} sums of [{}, {}] and [{}, {}]", sums.size(), a.rows, a.columns, b.rows, b.columns);
  if (a.rows == 0) return;
  constexpr std::int64_t kRowsEach = 256;
  const std::int64_t parts = (a.rows + kRowsEach - 1) / kRowsEach;
  const Numbers<float> of_parts(parts * a.columns);
  with_type(a.type, [&]<typename A>(A) {
    with_type(b.rows > 0 ? b.type : a.type, [&]<typename B>(B) {
      launch(sum_columns_kernel<A, B>, dim3(blocks_for(a.columns, kWarp), static_cast<unsigned>(parts)), kThreads,
             kThreads * sizeof(float), kRowsEach, view<const A>(a), view<const B>(b), of_parts.data());
    });
  });
  for_each(1, a.columns, AddParts{of_parts.data(), parts, a.columns, factor, sums.data()});
}

}  // namespace braid::kernels::cuda

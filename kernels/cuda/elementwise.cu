#include "kernels/cuda/simt.h"
#include "kernels/elementwise.h"

namespace braid::kernels::cuda {
namespace {

template <typename X, typename Y>
struct ScaleNumber {
  View<const X> x;
  View<Y> y;
  float factor;
  bool accumulate;
  template <int count>
  __device__ void at(std::int64_t row, std::int64_t column) const {
    Several<count> numbers = x.template load<count>(row, column), before{};
    if (accumulate) before = y.template load<count>(row, column);
#pragma unroll
    for (int j = 0; j < count; ++j) numbers[j] = accumulate ? before[j] + factor * numbers[j] : factor * numbers[j];
    y.store(row, column, numbers);
  }
};

template <typename Y>
struct FillNumber {
  View<Y> y;
  float value;
  __device__ void operator()(std::int64_t row, std::int64_t column) const { y.set(row, column, value); }
};

/// A block a part: each thread adds every kThreads-th square.
struct Stretch {
  const float* numbers;
  std::int64_t count;
};
__global__ void squared_norms_kernel(const Stretch* parts, double* sums) {
  const Stretch part = parts[blockIdx.x];
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < part.count; i += blockDim.x)
    sum += double{part.numbers[i]} * double{part.numbers[i]};
  sum = block_sum(sum, shared_memory<double>());
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

}  // namespace

void scale(float factor, ConstMatrix x, bool accumulate, Matrix y) {
  BRAID_CHECK(x.rows == y.rows && x.columns == y.columns, "[{}, {}] to [{}, {}]", x.rows, x.columns, y.rows, y.columns);
  with_type(x.type, [&]<typename X>(X) {
    with_type(y.type, [&]<typename Y>(Y) {
      const ScaleNumber<X, Y> scaled{view<const X>(x), view<Y>(y), factor, accumulate};
      for_several(y.rows, y.columns, scaled, scaled.x, scaled.y);
    });
  });
}

void add(ConstMatrix x, Matrix y) {
  scale(1, x, true, y);
}

void copy(ConstMatrix x, Matrix y) {
  scale(1, x, false, y);
}

void fill(float value, Matrix y) {
  with_type(y.type, [&]<typename Y>(Y) { for_each(y.rows, y.columns, FillNumber<Y>{view<Y>(y), value}); });
}

void squared_norms(std::span<const ConstVector> parts, BasicVector<double> sums) {
  BRAID_CHECK(parts.size() == sums.size(), "{} sums of {} parts", sums.size(), parts.size());
  if (parts.empty()) return;
  std::vector<Stretch> stretches;
  for (const ConstVector& part : parts) stretches.push_back({part.data(), std::ssize(part)});
  const Numbers<Stretch> staged(stretches);
  launch(squared_norms_kernel, dim3(static_cast<unsigned>(parts.size())), kThreads, kSumBytes, staged.data(),
         sums.data());
}

}  // namespace braid::kernels::cuda

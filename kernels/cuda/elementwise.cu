#include <algorithm>

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

/// A block each: each thread adds every kThreads-th square.
struct Stretch {
  const float* numbers;
  std::int64_t count;
};
constexpr std::int64_t kStretch = 8192;
__global__ void squares_kernel(const Stretch* stretches, double* sums) {
  const Stretch part = stretches[blockIdx.x];
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < part.count; i += blockDim.x)
    sum += double{part.numbers[i]} * double{part.numbers[i]};
  sum = block_sum(sum, shared_memory<double>());
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
/// Of part p those of the stretches [ends[p - 1], ends[p]), one after another.
struct SumStretches {
  const std::int64_t* ends;
  const double* squares;
  double* sums;
  __device__ void operator()(std::int64_t /*row*/, std::int64_t part) const {
    double sum = 0;
    for (std::int64_t i = part == 0 ? 0 : ends[part - 1]; i < ends[part]; ++i) sum += squares[i];
    sums[part] = sum;
  }
};

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
  std::vector<std::int64_t> ends;
  for (const ConstVector& part : parts) {
    for (std::int64_t first = 0; first < std::ssize(part); first += kStretch)
      stretches.push_back({part.data() + first, std::min(kStretch, std::ssize(part) - first)});
    ends.push_back(std::ssize(stretches));
  }
  const Numbers<Stretch> staged(stretches);
  const Numbers<std::int64_t> staged_ends(ends);
  const Numbers<double> squares(std::ssize(stretches));
  launch(squares_kernel, dim3(static_cast<unsigned>(stretches.size())), kThreads, kSumBytes, staged.data(),
         squares.data());
  for_each(1, std::ssize(parts), SumStretches{staged_ends.data(), squares.data(), sums.data()});
}

}  // namespace braid::kernels::cuda

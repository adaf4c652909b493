#include <cmath>

#include "kernels/cuda/simt.h"
#include "kernels/rms_norm.h"

namespace braid::kernels::cuda {
namespace {

/// A block a row.
template <int count, typename Number>
__global__ void forward_kernel(View<const Number> x, View<const float> weight, float epsilon, View<Number> y,
                               float* scale) {
  const std::int64_t row = blockIdx.x, step = blockDim.x * count;
  float sum = 0;
  for (std::int64_t i = threadIdx.x * count; i < x.columns; i += step) {
    const Several<count> numbers = x.template load<count>(row, i);
#pragma unroll
    for (int j = 0; j < count; ++j) sum += numbers[j] * numbers[j];
  }
  sum = block_sum(sum, shared_memory<float>());
  const float own = 1.0F / sqrtf(sum / static_cast<float>(x.columns) + epsilon);
  if (threadIdx.x == 0) scale[row] = own;
  for (std::int64_t i = threadIdx.x * count; i < x.columns; i += step) {
    Several<count> numbers = x.template load<count>(row, i);
    const Several<count> weights = weight.template load<count>(0, i);
#pragma unroll
    for (int j = 0; j < count; ++j) numbers[j] = numbers[j] * own * weights[j];
    y.store(row, i, numbers);
  }
}

template <typename Number>
struct Again {
  View<const Number> x;
  View<const float> weight;
  const float* scale;
  View<Number> y;
  template <int count>
  __device__ void at(std::int64_t row, std::int64_t i) const {
    Several<count> numbers = x.template load<count>(row, i);
    const Several<count> weights = weight.template load<count>(0, i);
#pragma unroll
    for (int j = 0; j < count; ++j) numbers[j] = numbers[j] * scale[row] * weights[j];
    y.store(row, i, numbers);
  }
};

template <int count, typename Number>
__global__ void backward_kernel(View<const Number> dy, View<const Number> x, View<const float> weight,
                                const float* scale, View<Number> dx) {
  const std::int64_t row = blockIdx.x, step = blockDim.x * count;
  float sum = 0;
  for (std::int64_t i = threadIdx.x * count; i < x.columns; i += step) {
    const Several<count> d = dy.template load<count>(row, i), numbers = x.template load<count>(row, i);
    const Several<count> weights = weight.template load<count>(0, i);
#pragma unroll
    for (int j = 0; j < count; ++j) sum += d[j] * weights[j] * numbers[j];
  }
  sum = block_sum(sum, shared_memory<float>());
  const float own = scale[row], mean = sum / static_cast<float>(x.columns);
  for (std::int64_t i = threadIdx.x * count; i < x.columns; i += step) {
    const Several<count> d = dy.template load<count>(row, i), numbers = x.template load<count>(row, i);
    const Several<count> weights = weight.template load<count>(0, i);
    Several<count> sums = dx.template load<count>(row, i);
#pragma unroll
    for (int j = 0; j < count; ++j) sums[j] += own * (d[j] * weights[j] - numbers[j] * own * own * mean);
    dx.store(row, i, sums);
  }
}

/// A warp a head of a row.
template <typename Number>
__global__ void head_forward_kernel(View<Number> x, const float* weight, std::int64_t size, float epsilon,
                                    View<Number> before, View<float> scale) {
  const std::int64_t row = blockIdx.x, lane = threadIdx.x % kWarp;
  for (std::int64_t head = threadIdx.x / kWarp; head < scale.columns; head += blockDim.x / kWarp) {
    float sum = 0;
    for (std::int64_t i = lane; i < size; i += kWarp) {
      const float number = x(row, head * size + i);
      before.set(row, head * size + i, number);
      sum += number * number;
    }
    const float own = 1.0F / sqrtf(warp_sum(sum) / static_cast<float>(size) + epsilon);
    if (lane == 0) scale.set(row, head, own);
    for (std::int64_t i = lane; i < size; i += kWarp)
      x.set(row, head * size + i, before(row, head * size + i) * own * weight[i]);
  }
}

template <typename Number>
__global__ void head_backward_kernel(View<Number> d, View<const Number> before, const float* weight, std::int64_t size,
                                     View<const float> scale) {
  const std::int64_t row = blockIdx.x, lane = threadIdx.x % kWarp;
  for (std::int64_t head = threadIdx.x / kWarp; head < scale.columns; head += blockDim.x / kWarp) {
    float sum = 0;
    for (std::int64_t i = lane; i < size; i += kWarp)
      sum += d(row, head * size + i) * weight[i] * before(row, head * size + i);
    const float own = scale(row, head), mean = warp_sum(sum) / static_cast<float>(size);
    for (std::int64_t i = lane; i < size; i += kWarp) {
      const std::int64_t place = head * size + i;
      d.set(row, place, own * (d(row, place) * weight[i] - before(row, place) * own * own * mean));
    }
  }
}

dim3 a_block_a_row(std::int64_t rows) {
  return dim3(static_cast<unsigned>(rows));
}

}  // namespace

void rms_norm_forward(ConstMatrix x, ConstVector weight, float epsilon, Matrix y, Vector scale) {
  with_type(x.type, [&]<typename Number>(Number) {
    const auto from = view<const Number>(x);
    const auto weights = row_view(weight.data(), std::ssize(weight));
    const auto to = view<Number>(y);
    with_several(
        x.columns,
        [&](auto several) {
          launch(forward_kernel<decltype(several)::value, Number>, a_block_a_row(x.rows), kThreads, kSumBytes, from,
                 weights, epsilon, to, scale.data());
        },
        from, weights, to);
  });
}

void rms_norm_again(ConstMatrix x, ConstVector weight, ConstVector scale, Matrix y) {
  with_type(x.type, [&]<typename Number>(Number) {
    const Again<Number> again{view<const Number>(x), row_view(weight.data(), std::ssize(weight)), scale.data(),
                              view<Number>(y)};
    for_several(x.rows, x.columns, again, again.x, again.weight, again.y);
  });
}

void rms_norm_backward(ConstMatrix dy, ConstMatrix x, ConstVector weight, ConstVector scale, Matrix dx) {
  with_type(x.type, [&]<typename Number>(Number) {
    const auto slopes = view<const Number>(dy), from = view<const Number>(x);
    const auto weights = row_view(weight.data(), std::ssize(weight));
    const auto to = view<Number>(dx);
    with_several(
        x.columns,
        [&](auto several) {
          launch(backward_kernel<decltype(several)::value, Number>, a_block_a_row(x.rows), kThreads, kSumBytes, slopes,
                 from, weights, scale.data(), to);
        },
        slopes, from, weights, to);
  });
}

void head_norm_forward(Matrix x, ConstVector weight, float epsilon, Matrix before, Matrix scale) {
  with_type(x.type, [&]<typename Number>(Number) {
    launch(head_forward_kernel<Number>, a_block_a_row(x.rows), kThreads, 0, view<Number>(x), weight.data(),
           std::ssize(weight), epsilon, view<Number>(before), view<float>(scale));
  });
}

void head_norm_backward(Matrix d, ConstMatrix before, ConstVector weight, ConstMatrix scale) {
  with_type(d.type, [&]<typename Number>(Number) {
    launch(head_backward_kernel<Number>, a_block_a_row(d.rows), kThreads, 0, view<Number>(d),
           view<const Number>(before), weight.data(), std::ssize(weight), view<const float>(scale));
  });
}

}  // namespace braid::kernels::cuda

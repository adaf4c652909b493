#include <cmath>

#include "kernels/cuda/simt.h"
#include "kernels/layer_norm.h"

namespace braid::kernels::cuda {
namespace {

/// A block a row; the mean first, then what is around it.
template <int count, typename Number>
__global__ void layer_norm_kernel(View<const Number> x, View<const float> weight, View<const float> bias, float epsilon,
                                  View<Number> y, View<float> statistics) {
  const std::int64_t row = blockIdx.x, step = blockDim.x * count;
  const auto columns = static_cast<float>(x.columns);
  float sum = 0;
  for (std::int64_t i = threadIdx.x * count; i < x.columns; i += step) {
    const Several<count> numbers = x.template load<count>(row, i);
#pragma unroll
    for (int j = 0; j < count; ++j) sum += numbers[j];
  }
  const float mean = block_sum(sum, shared_memory<float>()) / columns;
  sum = 0;
  for (std::int64_t i = threadIdx.x * count; i < x.columns; i += step) {
    const Several<count> numbers = x.template load<count>(row, i);
#pragma unroll
    for (int j = 0; j < count; ++j) sum += (numbers[j] - mean) * (numbers[j] - mean);
  }
  const float scale = 1.0F / sqrtf(block_sum(sum, shared_memory<float>()) / columns + epsilon);
  if (threadIdx.x == 0) {
    statistics.set(row, 0, mean);
    statistics.set(row, 1, scale);
  }
  for (std::int64_t i = threadIdx.x * count; i < x.columns; i += step) {
    Several<count> numbers = x.template load<count>(row, i);
    const Several<count> weights = weight.template load<count>(0, i), biases = bias.template load<count>(0, i);
#pragma unroll
    for (int j = 0; j < count; ++j) numbers[j] = (numbers[j] - mean) * scale * weights[j] + biases[j];
    y.store(row, i, numbers);
  }
}

template <typename Number>
struct LayerNormOnceMore {
  View<const Number> x;
  View<const float> weight, bias, statistics;
  View<Number> y;
  template <int count>
  __device__ void at(std::int64_t row, std::int64_t i) const {
    Several<count> numbers = x.template load<count>(row, i);
    const Several<count> weights = weight.template load<count>(0, i), biases = bias.template load<count>(0, i);
    const float mean = statistics(row, 0), scale = statistics(row, 1);
#pragma unroll
    for (int j = 0; j < count; ++j) numbers[j] = (numbers[j] - mean) * scale * weights[j] + biases[j];
    y.store(row, i, numbers);
  }
};

template <int count, typename Number>
__global__ void layer_norm_backward_kernel(View<const Number> dy, View<const Number> x, View<const float> weight,
                                           View<const float> statistics, View<Number> dx) {
  const std::int64_t row = blockIdx.x, step = blockDim.x * count;
  const auto columns = static_cast<float>(x.columns);
  const float mean = statistics(row, 0), scale = statistics(row, 1);
  float sum = 0, along = 0;
  for (std::int64_t i = threadIdx.x * count; i < x.columns; i += step) {
    const Several<count> d = dy.template load<count>(row, i), numbers = x.template load<count>(row, i);
    const Several<count> weights = weight.template load<count>(0, i);
#pragma unroll
    for (int j = 0; j < count; ++j) {
      const float g = d[j] * weights[j];
      sum += g;
      along += g * (numbers[j] - mean) * scale;
    }
  }
  sum = block_sum(sum, shared_memory<float>()) / columns;
  along = block_sum(along, shared_memory<float>()) / columns;
  for (std::int64_t i = threadIdx.x * count; i < x.columns; i += step) {
    const Several<count> d = dy.template load<count>(row, i), numbers = x.template load<count>(row, i);
    const Several<count> weights = weight.template load<count>(0, i);
    Several<count> sums = dx.template load<count>(row, i);
#pragma unroll
    for (int j = 0; j < count; ++j) sums[j] += scale * (d[j] * weights[j] - sum - (numbers[j] - mean) * scale * along);
    dx.store(row, i, sums);
  }
}

}  // namespace

void layer_norm_forward(ConstMatrix x, ConstVector weight, ConstVector bias, float epsilon, Matrix y,
                        Matrix statistics) {
  with_type(x.type, [&]<typename Number>(Number) {
    const auto from = view<const Number>(x);
    const auto weights = row_view(weight.data(), std::ssize(weight)), biases = row_view(bias.data(), std::ssize(bias));
    const auto to = view<Number>(y);
    with_several(
        x.columns,
        [&](auto several) {
          launch(layer_norm_kernel<decltype(several)::value, Number>, dim3(static_cast<unsigned>(x.rows)), kThreads,
                 kSumBytes, from, weights, biases, epsilon, to, view<float>(statistics));
        },
        from, weights, biases, to);
  });
}

void layer_norm_again(ConstMatrix x, ConstVector weight, ConstVector bias, ConstMatrix statistics, Matrix y) {
  with_type(x.type, [&]<typename Number>(Number) {
    const LayerNormOnceMore<Number> again{view<const Number>(x), row_view(weight.data(), std::ssize(weight)),
                                          row_view(bias.data(), std::ssize(bias)), view<const float>(statistics),
                                          view<Number>(y)};
    for_several(x.rows, x.columns, again, again.x, again.weight, again.bias, again.y);
  });
}

void layer_norm_backward(ConstMatrix dy, ConstMatrix x, ConstVector weight, ConstMatrix statistics, Matrix dx) {
  with_type(x.type, [&]<typename Number>(Number) {
    const auto slopes = view<const Number>(dy), from = view<const Number>(x);
    const auto weights = row_view(weight.data(), std::ssize(weight));
    const auto to = view<Number>(dx);
    with_several(
        x.columns,
        [&](auto several) {
          launch(layer_norm_backward_kernel<decltype(several)::value, Number>, dim3(static_cast<unsigned>(x.rows)),
                 kThreads, kSumBytes, slopes, from, weights, view<const float>(statistics), to);
        },
        slopes, from, weights, to);
  });
}

}  // namespace braid::kernels::cuda

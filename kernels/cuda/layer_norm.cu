#include <cmath>

#include "kernels/cuda/simt.h"
#include "kernels/layer_norm.h"

namespace braid::kernels::cuda {
namespace {

/// A block a row; the mean first, then what is around it.
template <typename Number>
__global__ void layer_norm_kernel(View<const Number> x, const float* weight, const float* bias, float epsilon,
                                  View<Number> y, View<float> statistics) {
  const std::int64_t row = blockIdx.x;
  const auto count = static_cast<float>(x.columns);
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < x.columns; i += blockDim.x) sum += x(row, i);
  const float mean = block_sum(sum, shared_memory<float>()) / count;
  sum = 0;
  for (std::int64_t i = threadIdx.x; i < x.columns; i += blockDim.x) sum += (x(row, i) - mean) * (x(row, i) - mean);
  const float scale = 1.0F / sqrtf(block_sum(sum, shared_memory<float>()) / count + epsilon);
  if (threadIdx.x == 0) {
    statistics.set(row, 0, mean);
    statistics.set(row, 1, scale);
  }
  for (std::int64_t i = threadIdx.x; i < x.columns; i += blockDim.x)
    y.set(row, i, (x(row, i) - mean) * scale * weight[i] + bias[i]);
}

template <typename Number>
struct LayerNormOnceMore {
  View<const Number> x;
  const float* weight;
  const float* bias;
  View<const float> statistics;
  View<Number> y;
  __device__ void operator()(std::int64_t row, std::int64_t i) const {
    y.set(row, i, (x(row, i) - statistics(row, 0)) * statistics(row, 1) * weight[i] + bias[i]);
  }
};

template <typename Number>
__global__ void layer_norm_backward_kernel(View<const Number> dy, View<const Number> x, const float* weight,
                                           View<const float> statistics, View<Number> dx) {
  const std::int64_t row = blockIdx.x;
  const auto count = static_cast<float>(x.columns);
  const float mean = statistics(row, 0), scale = statistics(row, 1);
  float sum = 0, along = 0;
  for (std::int64_t i = threadIdx.x; i < x.columns; i += blockDim.x) {
    const float g = dy(row, i) * weight[i];
    sum += g;
    along += g * (x(row, i) - mean) * scale;
  }
  sum = block_sum(sum, shared_memory<float>()) / count;
  along = block_sum(along, shared_memory<float>()) / count;
  for (std::int64_t i = threadIdx.x; i < x.columns; i += blockDim.x)
    dx.add(row, i, scale * (dy(row, i) * weight[i] - sum - (x(row, i) - mean) * scale * along));
}

}  // namespace

void layer_norm_forward(ConstMatrix x, ConstVector weight, ConstVector bias, float epsilon, Matrix y,
                        Matrix statistics) {
  with_type(x.type, [&]<typename Number>(Number) {
    launch(layer_norm_kernel<Number>, dim3(static_cast<unsigned>(x.rows)), kThreads, kSumBytes, view<const Number>(x),
           weight.data(), bias.data(), epsilon, view<Number>(y), view<float>(statistics));
  });
}

void layer_norm_again(ConstMatrix x, ConstVector weight, ConstVector bias, ConstMatrix statistics, Matrix y) {
  with_type(x.type, [&]<typename Number>(Number) {
    for_each(x.rows, x.columns,
             LayerNormOnceMore<Number>{view<const Number>(x), weight.data(), bias.data(), view<const float>(statistics),
                                       view<Number>(y)});
  });
}

void layer_norm_backward(ConstMatrix dy, ConstMatrix x, ConstVector weight, ConstMatrix statistics, Matrix dx) {
  with_type(x.type, [&]<typename Number>(Number) {
    launch(layer_norm_backward_kernel<Number>, dim3(static_cast<unsigned>(x.rows)), kThreads, kSumBytes,
           view<const Number>(dy), view<const Number>(x), weight.data(), view<const float>(statistics),
           view<Number>(dx));
  });
}

}  // namespace braid::kernels::cuda

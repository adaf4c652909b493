#include <cmath>

#include "kernels/cuda/simt.h"
#include "kernels/rms_norm.h"

namespace braid::kernels::cuda {
namespace {

/// A block a row.
template <typename Number>
__global__ void forward_kernel(View<const Number> x, const float* weight, float epsilon, View<Number> y, float* scale) {
  const std::int64_t row = blockIdx.x;
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < x.columns; i += blockDim.x) sum += x(row, i) * x(row, i);
  sum = block_sum(sum, shared_memory<float>());
  const float own = 1.0F / sqrtf(sum / static_cast<float>(x.columns) + epsilon);
  if (threadIdx.x == 0) scale[row] = own;
  for (std::int64_t i = threadIdx.x; i < x.columns; i += blockDim.x) y.set(row, i, x(row, i) * own * weight[i]);
}

template <typename Number>
struct Again {
  View<const Number> x;
  const float* weight;
  const float* scale;
  View<Number> y;
  __device__ void operator()(std::int64_t row, std::int64_t i) const {
    y.set(row, i, x(row, i) * scale[row] * weight[i]);
  }
};

template <typename Number>
__global__ void backward_kernel(View<const Number> dy, View<const Number> x, const float* weight, const float* scale,
                                View<Number> dx) {
  const std::int64_t row = blockIdx.x;
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < x.columns; i += blockDim.x) sum += dy(row, i) * weight[i] * x(row, i);
  sum = block_sum(sum, shared_memory<float>());
  const float own = scale[row], mean = sum / static_cast<float>(x.columns);
  for (std::int64_t i = threadIdx.x; i < x.columns; i += blockDim.x)
    dx.add(row, i, own * (dy(row, i) * weight[i] - x(row, i) * own * own * mean));
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
    launch(forward_kernel<Number>, a_block_a_row(x.rows), kThreads, kSumBytes, view<const Number>(x), weight.data(),
           epsilon, view<Number>(y), scale.data());
  });
}

void rms_norm_again(ConstMatrix x, ConstVector weight, ConstVector scale, Matrix y) {
  with_type(x.type, [&]<typename Number>(Number) {
    for_each(x.rows, x.columns, Again<Number>{view<const Number>(x), weight.data(), scale.data(), view<Number>(y)});
  });
}

void rms_norm_backward(ConstMatrix dy, ConstMatrix x, ConstVector weight, ConstVector scale, Matrix dx) {
  with_type(x.type, [&]<typename Number>(Number) {
    launch(backward_kernel<Number>, a_block_a_row(x.rows), kThreads, kSumBytes, view<const Number>(dy),
           view<const Number>(x), weight.data(), scale.data(), view<Number>(dx));
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

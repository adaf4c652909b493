#include <cmath>

#include "kernels/cross_entropy.h"
#include "kernels/cuda/simt.h"

namespace braid::kernels::cuda {
namespace {

constexpr float kLeast = -3.402823466e38F;

/// The greatest of a row, by the whole block.
template <typename Number>
__device__ float greatest(View<Number> logits, std::int64_t row) {
  float most = kLeast;
  for (std::int64_t i = threadIdx.x; i < logits.columns; i += blockDim.x) {
    const float logit = logits(row, i);
    // NaN is greater than any: it must come out of the loss.
    most = logit > most || logit != logit ? logit : most;
  }
  return block_max(most, shared_memory<float>());
}

template <typename Number>
__device__ float sum_of_exponentials(View<Number> logits, std::int64_t row, float most) {
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < logits.columns; i += blockDim.x) sum += expf(logits(row, i) - most);
  return block_sum(sum, shared_memory<float>());
}

/// A block a row.
template <typename Number>
__global__ void cross_entropy_kernel(View<Number> logits, const std::int32_t* labels, const float* scales,
                                     float* losses) {
  const std::int64_t row = blockIdx.x;
  const std::int32_t label = labels[row];
  const float most = greatest(logits, row), log_sum = most + logf(sum_of_exponentials(logits, row, most));
  if (threadIdx.x == 0) losses[row] = log_sum - logits(row, label);
  __syncthreads();  // the label's logit has been read
  for (std::int64_t i = threadIdx.x; i < logits.columns; i += blockDim.x)
    logits.set(row, i, scales[row] * (expf(logits(row, i) - log_sum) - (i == label ? 1.0F : 0.0F)));
}

template <typename Number>
__global__ void share_kernel(View<Number> logits, const std::int32_t* labels, View<float> shares) {
  const std::int64_t row = blockIdx.x;
  const std::int32_t label = labels[row];
  const float most = greatest(logits, row), sum = sum_of_exponentials(logits, row, most);
  if (threadIdx.x == 0) {
    shares.set(row, 0, most);
    shares.set(row, 1, sum);
    shares.set(row, 2, 0 <= label && label < logits.columns ? logits(row, label) : 0.0F);
  }
  __syncthreads();
  for (std::int64_t i = threadIdx.x; i < logits.columns; i += blockDim.x)
    logits.set(row, i, expf(logits(row, i) - most));
}

template <typename Number>
__global__ void of_shares_kernel(View<Number> logits, const std::int32_t* labels, const float* scales,
                                 View<const float> shares, std::int64_t place, float* losses) {
  const std::int64_t row = blockIdx.x;
  const std::int32_t label = labels[row];
  float most = shares(row, 0), total = 0, label_logit = 0;
  for (std::int64_t s = 3; s < shares.columns; s += 3) most = fmaxf(most, shares(row, s));
  for (std::int64_t s = 0; s < shares.columns; s += 3) {
    total += shares(row, s + 1) * expf(shares(row, s) - most);
    label_logit += shares(row, s + 2);
  }
  if (threadIdx.x == 0) losses[row] = most + logf(total) - label_logit;
  const float factor = scales[row] * expf(shares(row, 3 * place) - most) / total;
  for (std::int64_t i = threadIdx.x; i < logits.columns; i += blockDim.x)
    logits.set(row, i, logits(row, i) * factor - (i == label ? scales[row] : 0.0F));
}

dim3 a_block_each(ConstMatrix logits) {
  return dim3(static_cast<unsigned>(logits.rows));
}

}  // namespace

void cross_entropy(Matrix logits, std::span<const std::int32_t> labels, std::span<const float> scales, Vector losses) {
  const Numbers<std::int32_t> staged(labels);
  const Numbers<float> staged_scales(scales);
  with_type(logits.type, [&]<typename Number>(Number) {
    launch(cross_entropy_kernel<Number>, a_block_each(logits), kThreads, kSumBytes, view<Number>(logits), staged.data(),
           staged_scales.data(), losses.data());
  });
}

void cross_entropy_share(Matrix logits, std::span<const std::int32_t> labels, Matrix shares) {
  const Numbers<std::int32_t> staged(labels);
  with_type(logits.type, [&]<typename Number>(Number) {
    launch(share_kernel<Number>, a_block_each(logits), kThreads, kSumBytes, view<Number>(logits), staged.data(),
           view<float>(shares));
  });
}

void cross_entropy_of_shares(Matrix logits, std::span<const std::int32_t> labels, std::span<const float> scales,
                             ConstMatrix shares, std::int64_t place, Vector losses) {
  const Numbers<std::int32_t> staged(labels);
  const Numbers<float> staged_scales(scales);
  with_type(logits.type, [&]<typename Number>(Number) {
    launch(of_shares_kernel<Number>, a_block_each(logits), kThreads, 0, view<Number>(logits), staged.data(),
           staged_scales.data(), view<const float>(shares), place, losses.data());
  });
}

}  // namespace braid::kernels::cuda

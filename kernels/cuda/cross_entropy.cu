#include <cmath>

#include "kernels/cross_entropy.h"
#include "kernels/cuda/simt.h"

namespace braid::kernels::cuda {
namespace {

constexpr float kLeast = -3.402823466e38F;

/// The greatest of a row, by the whole block.
template <int count, typename Number>
__device__ float greatest(View<Number> logits, std::int64_t row) {
  float most = kLeast;
  for (std::int64_t i = threadIdx.x * count; i < logits.columns; i += blockDim.x * count) {
    const Several<count> loaded = logits.template load<count>(row, i);
#pragma unroll
    for (int j = 0; j < count; ++j) {
      // NaN is greater than any: it must come out of the loss.
      most = loaded[j] > most || loaded[j] != loaded[j] ? loaded[j] : most;
    }
  }
  return block_max(most, shared_memory<float>());
}

template <int count, typename Number>
__device__ float sum_of_exponentials(View<Number> logits, std::int64_t row, float most) {
  float sum = 0;
  for (std::int64_t i = threadIdx.x * count; i < logits.columns; i += blockDim.x * count) {
    const Several<count> loaded = logits.template load<count>(row, i);
#pragma unroll
    for (int j = 0; j < count; ++j) sum += expf(loaded[j] - most);
  }
  return block_sum(sum, shared_memory<float>());
}

/// Each logit of the row becomes work(logit, its column).
template <int count, typename Number, typename Work>
__device__ void rewrite(View<Number> logits, std::int64_t row, const Work& work) {
  for (std::int64_t i = threadIdx.x * count; i < logits.columns; i += blockDim.x * count) {
    Several<count> loaded = logits.template load<count>(row, i);
#pragma unroll
    for (int j = 0; j < count; ++j) loaded[j] = work(loaded[j], i + j);
    logits.store(row, i, loaded);
  }
}

/// A block a row.
template <int count, typename Number>
__global__ void cross_entropy_kernel(View<Number> logits, const std::int32_t* labels, const float* scales,
                                     float* losses) {
  const std::int64_t row = blockIdx.x;
  const std::int32_t label = labels[row];
  const float most = greatest<count>(logits, row);
  const float log_sum = most + logf(sum_of_exponentials<count>(logits, row, most)), scale = scales[row];
  if (threadIdx.x == 0) losses[row] = log_sum - logits(row, label);
  __syncthreads();  // the label's logit has been read
  rewrite<count>(logits, row, [&](float logit, std::int64_t i) {
    return scale * (expf(logit - log_sum) - (i == label ? 1.0F : 0.0F));
  });
}

template <int count, typename Number>
__global__ void share_kernel(View<Number> logits, const std::int32_t* labels, View<float> shares) {
  const std::int64_t row = blockIdx.x;
  const std::int32_t label = labels[row];
  const float most = greatest<count>(logits, row), sum = sum_of_exponentials<count>(logits, row, most);
  if (threadIdx.x == 0) {
    shares.set(row, 0, most);
    shares.set(row, 1, sum);
    shares.set(row, 2, 0 <= label && label < logits.columns ? logits(row, label) : 0.0F);
  }
  __syncthreads();
  rewrite<count>(logits, row, [&](float logit, std::int64_t) { return expf(logit - most); });
}

template <int count, typename Number>
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
  const float scale = scales[row], factor = scale * expf(shares(row, 3 * place) - most) / total;
  rewrite<count>(logits, row,
                 [&](float logit, std::int64_t i) { return logit * factor - (i == label ? scale : 0.0F); });
}

dim3 a_block_each(ConstMatrix logits) {
  return dim3(static_cast<unsigned>(logits.rows));
}
/// Few rows of many columns keep a GPU busy by many threads each.
unsigned threads_for(ConstMatrix logits) {
  constexpr std::int64_t kMany = 16384;
  return logits.columns < kMany ? kThreads : 4 * kThreads;
}
std::size_t sum_bytes(unsigned threads) {
  return threads / kWarp * sizeof(float);
}

}  // namespace

void cross_entropy(Matrix logits, std::span<const std::int32_t> labels, std::span<const float> scales, Vector losses) {
  const Numbers<std::int32_t> staged(labels);
  const Numbers<float> staged_scales(scales);
  with_type(logits.type, [&]<typename Number>(Number) {
    const auto rows = view<Number>(logits);
    with_several(
        logits.columns,
        [&](auto several) {
          launch(cross_entropy_kernel<decltype(several)::value, Number>, a_block_each(logits), threads_for(logits),
                 sum_bytes(threads_for(logits)), rows, staged.data(), staged_scales.data(), losses.data());
        },
        rows);
  });
}

void cross_entropy_share(Matrix logits, std::span<const std::int32_t> labels, Matrix shares) {
  const Numbers<std::int32_t> staged(labels);
  with_type(logits.type, [&]<typename Number>(Number) {
    const auto rows = view<Number>(logits);
    with_several(
        logits.columns,
        [&](auto several) {
          launch(share_kernel<decltype(several)::value, Number>, a_block_each(logits), threads_for(logits),
                 sum_bytes(threads_for(logits)), rows, staged.data(), view<float>(shares));
        },
        rows);
  });
}

void cross_entropy_of_shares(Matrix logits, std::span<const std::int32_t> labels, std::span<const float> scales,
                             ConstMatrix shares, std::int64_t place, Vector losses) {
  const Numbers<std::int32_t> staged(labels);
  const Numbers<float> staged_scales(scales);
  with_type(logits.type, [&]<typename Number>(Number) {
    const auto rows = view<Number>(logits);
    with_several(
        logits.columns,
        [&](auto several) {
          launch(of_shares_kernel<decltype(several)::value, Number>, a_block_each(logits), threads_for(logits), 0, rows,
                 staged.data(), staged_scales.data(), view<const float>(shares), place, losses.data());
        },
        rows);
  });
}

}  // namespace braid::kernels::cuda

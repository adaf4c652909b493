#include <cuda_bf16.h>

#include "kernels/gpu_probe/device/cuda_check.h"
#include "kernels/gpu_probe/device/kernels.h"

namespace braid::gpu_probe {
namespace {

constexpr int kThreads = 256;
/// Loads under way at once in a thread that moves memory.
constexpr int kPieces = 4;

__global__ void empty_kernel() {}

__global__ void delay_kernel(long long cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {
  }
}

__global__ void fill_kernel(__nv_bfloat16* numbers, std::int64_t count, std::uint32_t seed) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += stride) {
    // The finalizer of MurmurHash3.
    std::uint32_t bits = static_cast<std::uint32_t>(i) * 2654435761U + seed;
    bits = (bits ^ (bits >> 16)) * 0x85ebca6bU;
    bits = (bits ^ (bits >> 13)) * 0xc2b2ae35U;
    bits ^= bits >> 16;
    numbers[i] = __float2bfloat16(static_cast<float>(bits >> 8) * 0x1p-23F - 1.0F);
  }
}

__global__ void copy_kernel(uint4* to, const uint4* from, std::int64_t count) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kThreads * kPieces + threadIdx.x;
  uint4 pieces[kPieces];
#pragma unroll
  for (int i = 0; i < kPieces; ++i) {
    if (first + i * kThreads < count) pieces[i] = from[first + i * kThreads];
  }
#pragma unroll
  for (int i = 0; i < kPieces; ++i) {
    if (first + i * kThreads < count) to[first + i * kThreads] = pieces[i];
  }
}

/// 8 numbers, as wide as a thread's loads go.
union Eight {
  uint4 whole;
  __nv_bfloat162 pairs[4];
  __device__ Eight() {}
};

__global__ void add_kernel(uint4* sum, const uint4* a, const uint4* b, std::int64_t count) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  Eight left, right;
  left.whole = a[i];
  right.whole = b[i];
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) left.pairs[pair] = __hadd2(left.pairs[pair], right.pairs[pair]);
  sum[i] = left.whole;
}

unsigned blocks(std::int64_t count, std::int64_t of_a_block) {
  return static_cast<unsigned>((count + of_a_block - 1) / of_a_block);
}

}  // namespace

void launch_empty(cudaStream_t stream) {
  empty_kernel<<<1, 1, 0, stream>>>();
  check(cudaGetLastError(), "starting an empty kernel");
}

void launch_delay(std::int64_t cycles, cudaStream_t stream) {
  delay_kernel<<<1, 1, 0, stream>>>(cycles);
  check(cudaGetLastError(), "starting a delay");
}

void launch_fill(void* numbers, std::int64_t count, std::uint32_t seed, cudaStream_t stream) {
  constexpr unsigned kBlocks = 2048;
  fill_kernel<<<kBlocks, kThreads, 0, stream>>>(static_cast<__nv_bfloat16*>(numbers), count, seed);
  check(cudaGetLastError(), "starting to fill memory");
}

void launch_copy(void* to, const void* from, std::int64_t bytes, cudaStream_t stream) {
  const std::int64_t count = bytes / static_cast<std::int64_t>(sizeof(uint4));
  copy_kernel<<<blocks(count, kThreads * kPieces), kThreads, 0, stream>>>(static_cast<uint4*>(to),
                                                                          static_cast<const uint4*>(from), count);
  check(cudaGetLastError(), "starting a copy");
}

void launch_add(void* sum, const void* a, const void* b, std::int64_t count, cudaStream_t stream) {
  const std::int64_t pieces = count / 8;
  add_kernel<<<blocks(pieces, kThreads), kThreads, 0, stream>>>(static_cast<uint4*>(sum), static_cast<const uint4*>(a),
                                                                static_cast<const uint4*>(b), pieces);
  check(cudaGetLastError(), "starting an addition");
}

}  // namespace braid::gpu_probe

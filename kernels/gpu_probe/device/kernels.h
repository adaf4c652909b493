#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace braid::gpu_probe {

// Each only queues its kernel on `stream`; pointers are to GPU memory, aligned to 16 bytes. Throw Failure.

/// Does nothing.
void launch_empty(cudaStream_t stream);

/// Holds the stream for that many cycles of a multiprocessor's clock.
void launch_delay(std::int64_t cycles, cudaStream_t stream);

/// bf16 numbers spread evenly over [-1, 1): a GPU multiplies zeros with less power, so faster, than what training has.
void launch_fill(void* numbers, std::int64_t count, std::uint32_t seed, cudaStream_t stream);

/// `bytes` must be a multiple of 16.
void launch_copy(void* to, const void* from, std::int64_t bytes, cudaStream_t stream);

/// sum = a + b, all bf16; `count` must be a multiple of 8.
void launch_add(void* sum, const void* a, const void* b, std::int64_t count, cudaStream_t stream);

}  // namespace braid::gpu_probe

#pragma once

#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#define BRAID_HOST_DEVICE __host__ __device__
#else
#define BRAID_HOST_DEVICE
#endif

namespace braid::kernels::cuda {

/// The upper half of an f32 number, rounded to the nearest, ties to even; NaN stays NaN.
struct Bf16 {
  std::uint16_t bits = 0;

  Bf16() = default;
  BRAID_HOST_DEVICE explicit Bf16(float number) {
#ifdef __CUDA_ARCH__
    bits = __bfloat16_as_ushort(__float2bfloat16_rn(number));
#else
    std::uint32_t word = 0;
    std::memcpy(&word, &number, sizeof word);
    const bool nan = (word & 0x7FFFFFFFU) > 0x7F800000U;
    bits = static_cast<std::uint16_t>(nan ? 0x7FFFU : (word + 0x7FFFU + ((word >> 16) & 1U)) >> 16);
#endif
  }
  BRAID_HOST_DEVICE explicit operator float() const {
#ifdef __CUDA_ARCH__
    return __bfloat162float(__ushort_as_bfloat16(bits));
#else
    const std::uint32_t word = std::uint32_t{bits} << 16;
    float number = 0;
    std::memcpy(&number, &word, sizeof number);
    return number;
#endif
  }
};

}  // namespace braid::kernels::cuda

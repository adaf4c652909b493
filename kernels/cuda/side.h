#pragma once

#include "kernels/cuda/drops.h"
#include "kernels/cuda/tensor_core.h"

/// Matrices as products by tensor cores read them: of f32 or bf16, rounded to bf16, whichever way they lie.
namespace braid::kernels::cuda {

/// One side of a product: `count` rows of `depth` numbers, whichever way they lie.
struct Side {
  const void* data;
  std::int64_t count, row_stride, depth_stride;
  bool bf16;
  bool across;   // neighbours in memory are of one depth, else of one row
  bool vectors;  // eight neighbours lie on 16 bytes
  Drops drops;
  __device__ Bf16 at(std::int64_t row, std::int64_t k) const {
    const std::int64_t place = row * row_stride + k * depth_stride;
    return bf16 ? static_cast<const Bf16*>(data)[place] : Bf16(static_cast<const float*>(data)[place]);
  }
};

/// Along K, or along rows, from (row, k) on; zeros beyond the matrix.
template <bool across>
__device__ Together load_plain(const Side& side, std::int64_t row, std::int64_t k, std::int64_t last_k) {
  const std::int64_t rows_left = side.count - row, left = last_k - k;
  const bool inside = across ? rows_left >= kTogether && left > 0 : rows_left > 0 && left >= kTogether;
  Together loaded{};
  if (rows_left <= 0 || left <= 0) return loaded;
  if (inside && side.vectors) {
    const std::int64_t place = row * side.row_stride + k * side.depth_stride;
    if (side.bf16) return *reinterpret_cast<const Together*>(static_cast<const Bf16*>(side.data) + place);
    struct alignas(16) Four {
      float numbers[4];
    };
    const auto* from = reinterpret_cast<const Four*>(static_cast<const float*>(side.data) + place);
    for (int i = 0; i < 4; ++i) {
      const Four four = from[i / 2];
      loaded.halves[i] = pack(Bf16(four.numbers[i % 2 * 2]), Bf16(four.numbers[i % 2 * 2 + 1]));
    }
    return loaded;
  }
  // Unrolled it takes registers that half of the blocks then lack.
#pragma unroll 1
  for (int i = 0; i < kTogether; ++i) {
    const bool there = across ? i < rows_left && left > 0 : rows_left > 0 && i < left;
    shift_in(loaded, there ? side.at(across ? row + i : row, across ? k : k + i) : Bf16(0.0F));
  }
  return loaded;
}

/// The same, of which numbers are dropped.
template <bool across>
__device__ Together load_together(const Side& side, std::int64_t row, std::int64_t k, std::int64_t last_k) {
  Together loaded = load_plain<across>(side, row, k, last_k);
  if (!side.drops.any() || row >= side.count || k >= last_k) return loaded;
  const std::uint32_t kept = side.drops.kept_together(across ? k : row, across ? row : k);
  for (int i = 0; i < kTogether / 2; ++i) {
    const auto number = [&](int which) {
      const float scaled = static_cast<float>(half_of(loaded.halves[i], which)) * side.drops.scale;
      return Bf16((kept >> (2 * i + which) & 1U) == 0 ? 0.0F : scaled);
    };
    loaded.halves[i] = pack(number(0), number(1));
  }
  return loaded;
}

/// Whether eight neighbours in its rows do, from the first on.
inline bool lies_on_16_bytes(ConstMatrix matrix) {
  const std::int64_t on_16_bytes = matrix.type == costmodel::DataType::bf16 ? 8 : 4;
  return reinterpret_cast<std::uintptr_t>(matrix.data) % 16 == 0 && matrix.stride % on_16_bytes == 0;
}

inline Side side(ConstMatrix matrix, bool across, const Drops& drops) {
  const std::int64_t row_stride = across ? 1 : matrix.stride, depth_stride = across ? matrix.stride : 1;
  const bool bf16 = matrix.type == costmodel::DataType::bf16;
  return {matrix.data,
          across ? matrix.columns : matrix.rows,
          row_stride,
          depth_stride,
          bf16,
          across,
          lies_on_16_bytes(matrix),
          drops};
}

}  // namespace braid::kernels::cuda

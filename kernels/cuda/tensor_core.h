#pragma once

#include "kernels/cuda/simt.h"

/// What tensor cores are used by, from sm_80 on: copies to shared memory that go on beside arithmetic, products of
/// tiles of bf16 numbers, added up in f32, and the loads that lay tiles out among the lanes of a warp, each of which
/// all lanes of a warp call together. The layouts are PTX's, of mma.m16n8k16 and ldmatrix; on the processor they are
/// acted out lane by lane.
namespace braid::kernels::cuda {

/// 16 × 16 numbers of a product's left side, in halves of two numbers each: of lane l the rows l/4 and l/4 + 8 and the
/// columns 2 (l%4) + {0, 1} and + {8, 9}.
struct FragmentA {
  std::uint32_t halves[4];
};
/// 16 × 8 numbers of its right side: of lane l the column l/4 and the rows 2 (l%4) + {0, 1} and + {8, 9}.
struct FragmentB {
  std::uint32_t halves[2];
};
/// 16 × 8 sums: of lane l the rows l/4 (the first two) and l/4 + 8, and the columns 2 (l%4) + {0, 1}.
struct Sums {
  float numbers[4] = {};
};

/// A block of four warps makes a tile of 64 rows, 16 of each warp.
inline constexpr int kTileRows = 64, kTileBlock = 128;
/// Numbers that are loaded at once, and these: 16 bytes of bf16.
inline constexpr int kTogether = 8;
struct alignas(16) Together {
  std::uint32_t halves[4];
};

/// Two numbers, the first in the lower half.
__device__ inline std::uint32_t pack(Bf16 first, Bf16 second) {
  return std::uint32_t{first.bits} | std::uint32_t{second.bits} << 16;
}
__device__ inline Bf16 half_of(std::uint32_t halves, int which) {
  Bf16 number;
  number.bits = static_cast<std::uint16_t>(which == 0 ? halves & 0xFFFFU : halves >> 16);
  return number;
}

/// Drops the first of eight numbers, and adds one behind the last: so loops over them need no array, which would lie in
/// local memory, and need not be unrolled.
__device__ inline void shift_in(Together& numbers, Bf16 last) {
  std::uint32_t(&halves)[4] = numbers.halves;
  for (int half = 0; half < 3; ++half) halves[half] = halves[half] >> 16 | halves[half + 1] << 16;
  halves[3] = halves[3] >> 16 | std::uint32_t{last.bits} << 16;
}

/// Eight numbers to shared memory, or zeros; both lie on 16 bytes. They come once the thread awaits them, and are there
/// for others when the block has met after that.
__device__ inline void copy_later(const Bf16* from, Bf16* to, bool zeros) {
  [[maybe_unused]] const unsigned bytes = zeros ? 0 : sizeof(Together);
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(to))), "l"(__cvta_generic_to_global(from)),
                 "r"(bytes)
               : "memory");
#elif !defined(__CUDACC__)
  on_cpu::copy_later(from, to, bytes, sizeof(Together));
#endif
}
/// What the thread has copied since the last call is a group.
__device__ inline void close_copies() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.commit_group;" ::: "memory");
#elif !defined(__CUDACC__)
  on_cpu::close_copies();
#endif
}
/// Until all groups of the thread have come but the last so many.
template <int groups_left>
__device__ void await_copies() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.wait_group %0;" ::"n"(groups_left) : "memory");
#elif !defined(__CUDACC__)
  on_cpu::await_copies(groups_left);
#endif
}

/// Four tiles of 8 × 8 numbers from shared memory: lane l says where row l % 8 of tile l / 8 begins, on 16 bytes, and
/// gets of each tile the numbers 2 (l%4) + {0, 1} of row l/4, or `across` of column l/4.
template <bool across>
__device__ void load_tiles(const Bf16* row, std::uint32_t (&tiles)[4]) {
#ifdef __CUDA_ARCH__
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (across) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(tiles[0]), "=r"(tiles[1]), "=r"(tiles[2]), "=r"(tiles[3])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(tiles[0]), "=r"(tiles[1]), "=r"(tiles[2]), "=r"(tiles[3])
                 : "r"(address)
                 : "memory");
  }
#elif !defined(__CUDACC__)
  const Bf16* rows[kWarp];
  on_cpu::share(row, rows);
  const unsigned lane = threadIdx.x % kWarp, own = lane / 4, pair = 2 * (lane % 4);
  for (unsigned tile = 0; tile < 4; ++tile) {
    const Bf16* const* of_tile = rows + 8 * tile;
    tiles[tile] =
        across ? pack(of_tile[pair][own], of_tile[pair + 1][own]) : pack(of_tile[own][pair], of_tile[own][pair + 1]);
  }
#endif
}

/// sums += a b.
__device__ inline void multiply(const FragmentA& a, const FragmentB& b, Sums& sums) {
#ifdef __CUDA_ARCH__
  float* to = sums.numbers;
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(to[0]), "+f"(to[1]), "+f"(to[2]), "+f"(to[3])
      : "r"(a.halves[0]), "r"(a.halves[1]), "r"(a.halves[2]), "r"(a.halves[3]), "r"(b.halves[0]), "r"(b.halves[1]));
#elif !defined(__CUDACC__)
  const FragmentA* left[kWarp];
  const FragmentB* right[kWarp];
  on_cpu::share(&a, left);
  on_cpu::share(&b, right);
  const unsigned lane = threadIdx.x % kWarp;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = lane / 4, column = 2 * (lane % 4) + i % 2;
    for (unsigned k = 0; k < 16; ++k) {
      const unsigned pair = k % 8 / 2, upper = k / 8;
      const std::uint32_t of_a = left[4 * row + pair]->halves[2 * upper + i / 2];
      const std::uint32_t of_b = right[4 * column + pair]->halves[upper];
      sums.numbers[i] += static_cast<float>(half_of(of_a, static_cast<int>(k % 2))) *
                         static_cast<float>(half_of(of_b, static_cast<int>(k % 2)));
    }
  }
  __syncwarp();  // before a lane changes what others still read
#endif
}

/// Where a tile of an operand lies in shared memory: rows of it along K, or rows of K along it.
template <int kStride, bool across>
struct SharedTile {
  const Bf16* data;

  /// Rows [row, row + 16) and K [k, k + 16) of a left side.
  __device__ FragmentA a(int row, int k) const {
    const int lane = static_cast<int>(threadIdx.x % kWarp), tile = lane / 8, within = lane % 8;
    FragmentA fragment;
    if constexpr (across) {
      load_tiles<true>(data + (k + tile / 2 * 8 + within) * kStride + row + tile % 2 * 8, fragment.halves);
    } else {
      load_tiles<false>(data + (row + tile % 2 * 8 + within) * kStride + k + tile / 2 * 8, fragment.halves);
    }
    return fragment;
  }
  /// Columns [column, column + 16) and K [k, k + 16) of a right side, 8 columns each.
  __device__ void b(int column, int k, FragmentB (&fragments)[2]) const {
    const int lane = static_cast<int>(threadIdx.x % kWarp), tile = lane / 8, within = lane % 8;
    std::uint32_t halves[4];
    if constexpr (across) {
      load_tiles<true>(data + (k + tile % 2 * 8 + within) * kStride + column + tile / 2 * 8, halves);
    } else {
      load_tiles<false>(data + (column + tile / 2 * 8 + within) * kStride + k + tile % 2 * 8, halves);
    }
    fragments[0] = {{halves[0], halves[1]}};
    fragments[1] = {{halves[2], halves[3]}};
  }
};

}  // namespace braid::kernels::cuda

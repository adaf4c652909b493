#pragma once

#include "kernels/cuda/tensor_core.h"
#include "kernels/cuda/tile_map.h"

/// What products of large tiles are made by on sm_90a: the copy engine (TMA) brings boxes of matrices to shared memory
/// and counts their bytes at barriers there; warpgroups of 128 threads multiply them there (wgmma). Both go on beside
/// what threads do until somebody awaits them. Layouts are PTX's for rows of 128 bytes that are swizzled; on the
/// processor they are acted out. Kernels for other GPUs compile, and do nothing.
namespace braid::kernels::cuda {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define BRAID_WARPGROUPS 1
#endif

inline constexpr int kWarpgroup = 128;
/// Numbers of a box's row: 128 bytes.
inline constexpr int kBoxColumns = 64;
/// Bytes that eight rows take. Boxes begin at multiples of it in shared memory.
inline constexpr int kEightRows = 1024;

/// Shared memory whose first byte is a box's.
#ifdef __CUDACC__
__device__ inline unsigned char* shared_boxes() {
  extern __shared__ __align__(1024) unsigned char boxes[];
  return boxes;
}
#else
inline unsigned char* shared_boxes() {
  return static_cast<unsigned char*>(on_cpu::shared_bytes());
}
#endif

/// Where it lies in shared memory.
__device__ inline std::uint32_t shared_place(const void* address) {
#ifdef __CUDA_ARCH__
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(address));
#elif !defined(__CUDACC__)
  return static_cast<std::uint32_t>(static_cast<const unsigned char*>(address) - shared_boxes());
#else
  return 0;
#endif
}

/// In shared memory: a phase ends when so many threads have arrived and all bytes that were told of have come; then the
/// next begins. Phases are of parity 0, 1, 0 and so on.
struct Barrier {
  std::uint64_t state;

  /// By one thread, before the block meets.
  __device__ void begin(unsigned arrivals) {
#ifdef BRAID_WARPGROUPS
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(shared_place(this)), "r"(arrivals) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
#elif !defined(__CUDACC__)
    on_cpu::begin_barrier(this, arrivals);
#endif
  }
  __device__ void arrive() {
#ifdef BRAID_WARPGROUPS
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(shared_place(this)) : "memory");
#elif !defined(__CUDACC__)
    on_cpu::arrive(this, 0);
#endif
  }
  /// Arrives, and tells of bytes that the copy engine brings.
  __device__ void arrive_ahead_of([[maybe_unused]] std::uint32_t bytes) {
#ifdef BRAID_WARPGROUPS
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :
                 : "r"(shared_place(this)), "r"(bytes)
                 : "memory");
#elif !defined(__CUDACC__)
    on_cpu::arrive(this, bytes);
#endif
  }
  /// Until the phase of that parity has ended, if it is the one that goes on; else not at all.
  __device__ void await([[maybe_unused]] unsigned parity) {
#ifdef BRAID_WARPGROUPS
    std::uint32_t ended = 0;
    while (ended == 0) {
      asm volatile(
          "{ .reg .pred ended; mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2; selp.u32 %0, 1, 0, ended; }"
          : "=r"(ended)
          : "r"(shared_place(this)), "r"(parity)
          : "memory");
    }
#elif !defined(__CUDACC__)
    on_cpu::await_phase(this, parity);
#endif
  }
};

#ifndef __CUDACC__
/// Bytes of 128-byte rows as they lie: of their 16-byte parts, the place is drawn from the row's.
constexpr std::uint32_t swizzled(std::uint32_t place) {
  return place ^ (place >> 7 & 7U) << 4;
}
#endif

/// Has the copy engine bring the box of `rows` rows at (row, column) of the matrix; the barrier counts its bytes. `to`
/// is where a box begins.
template <int rows>
__device__ void copy_box(const TileMap& map, std::int32_t row, std::int32_t column, unsigned char* to,
                         Barrier& barrier) {
#ifdef BRAID_WARPGROUPS
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
      :
      : "r"(shared_place(to)), "l"(&map), "r"(column), "r"(row), "r"(shared_place(&barrier))
      : "memory");
#elif !defined(__CUDACC__)
  const auto* data = reinterpret_cast<const Bf16*>(map.words[0]);
  const auto count = static_cast<std::int64_t>(map.words[1]), width = static_cast<std::int64_t>(map.words[2]),
             stride = static_cast<std::int64_t>(map.words[3]);
  BRAID_CHECK(map.words[4] == rows && shared_place(to) % kEightRows == 0, "a box of {} rows at {}", map.words[4],
              shared_place(to));
  on_cpu::bring_later(&barrier, rows * 2 * kBoxColumns, [=, boxes = shared_boxes(), place = shared_place(to)] {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < kBoxColumns; ++c) {
        const bool inside = row + r < count && column + c < width;
        const auto at = static_cast<std::uint32_t>(place + r * 2 * kBoxColumns + 2 * c);
        *reinterpret_cast<Bf16*>(boxes + swizzled(at)) = inside ? data[(row + r) * stride + column + c] : Bf16(0.0F);
      }
    }
  });
#endif
}

/// A tile of a product's side, in boxes. Along K: its rows are rows of a box, whose columns are K. Across: its rows are
/// columns, 64 of each box one behind the other, and rows of a box are K.
template <bool across>
struct BoxedTile {
  const unsigned char* boxes;
  /// As wgmma is told of the K [k, k + 16), of boxes of `box_rows` rows.
  template <int box_rows>
  __device__ std::uint64_t describe(int row, int k) const {
    const int first = across ? row / kBoxColumns * box_rows * 128 + k * 128 : row * 128 + k * 2;
    const auto place = static_cast<std::uint64_t>(shared_place(boxes) + static_cast<std::uint32_t>(first));
    constexpr std::uint64_t kNextBox = across ? box_rows * 128 / 16 : 1, kNextRows = kEightRows / 16, kSwizzled = 1;
    return (place & 0x3FFFFU) >> 4 | kNextBox << 16 | kNextRows << 32 | kSwizzled << 62;
  }
};

/// Before the first of a row of products whose sums the thread may have touched. The warp meets here, and where it
/// awaits them.
__device__ inline void open_products() {
#ifdef BRAID_WARPGROUPS
  asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
#elif !defined(__CUDACC__)
  __syncwarp();
#endif
}
/// What the thread has begun since the last call is a group.
__device__ inline void close_products() {
#ifdef BRAID_WARPGROUPS
  asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
#elif !defined(__CUDACC__)
  on_cpu::close_products();
#endif
}
/// Until all groups of the thread have ended but the last so many.
template <int groups_left, int count>
__device__ void await_products([[maybe_unused]] Sums (&sums)[count]) {
#ifdef BRAID_WARPGROUPS
  asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(groups_left) : "memory");
  if constexpr (groups_left == 0) {
    // Sums are read after this alone.
#pragma unroll
    for (int n = 0; n < count; ++n)
      for (int i = 0; i < 4; ++i) asm volatile("" : "+f"(sums[n].numbers[i]) : : "memory");
  }
#elif !defined(__CUDACC__)
  on_cpu::await_products(groups_left);
  __syncwarp();
#endif
}

/// Registers of each thread of the warpgroup from here on, which all of its warps tell of.
template <int count>
__device__ void take_registers() {
#ifdef BRAID_WARPGROUPS
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(count));
#endif
}
template <int count>
__device__ void leave_registers() {
#ifdef BRAID_WARPGROUPS
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(count));
#endif
}

#ifndef __CUDACC__
/// A number of a described tile.
template <bool across>
float described(const unsigned char* boxes, std::uint64_t tile, unsigned row, unsigned k) {
  BRAID_CHECK(tile >> 62 == 1, "a tile that is not swizzled by 128 bytes");
  const auto field = [&](int bit) { return static_cast<std::uint32_t>(tile >> bit & 0x3FFFU) << 4; };
  const std::uint32_t place = across ? field(0) + row / 64 * field(16) + row % 64 * 2 + k / 8 * field(32) + k % 8 * 128
                                     : field(0) + row / 8 * field(32) + row % 8 * 128 + k * 2;
  return static_cast<float>(*reinterpret_cast<const Bf16*>(boxes + swizzled(place)));
}
#endif

#define BRAID_SUMS(n) \
  "+f"(sums[n].numbers[0]), "+f"(sums[n].numbers[1]), "+f"(sums[n].numbers[2]), "+f"(sums[n].numbers[3])
#define BRAID_SUMS_8(n)                                                                              \
  BRAID_SUMS(n), BRAID_SUMS((n) + 1), BRAID_SUMS((n) + 2), BRAID_SUMS((n) + 3), BRAID_SUMS((n) + 4), \
      BRAID_SUMS((n) + 5), BRAID_SUMS((n) + 6), BRAID_SUMS((n) + 7)

/// Begins sums = a b, or sums += a b where it `adds`, of 64 rows of a, 8 `count` rows of b and 16 of K. Of warp w of
/// the warpgroup sums[n] are rows 16 w + [0, 16) and columns 8 n + [0, 8), laid out as Sums are.
template <bool across, int count>
__device__ void begin_product(Sums (&sums)[count], [[maybe_unused]] std::uint64_t a, [[maybe_unused]] std::uint64_t b,
                              [[maybe_unused]] bool adds) {
  static_assert(count == 16 || count == 32);
#ifdef BRAID_WARPGROUPS
  const auto added = static_cast<std::uint32_t>(adds);
  if constexpr (count == 32) {
    asm volatile(
        "{ .reg .pred adds; setp.ne.b32 adds, %130, 0; "
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, "
        "%23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, "
        "%44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, "
        "%65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, "
        "%86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, "
        "%106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, "
        "%123, %124, %125, %126, %127}, "
        "%128, %129, adds, 1, 1, 0, %131; }"
        : BRAID_SUMS_8(0), BRAID_SUMS_8(8), BRAID_SUMS_8(16), BRAID_SUMS_8(24)
        : "l"(a), "l"(b), "r"(added), "n"(across ? 1 : 0));
  } else {
    asm volatile(
        "{ .reg .pred adds; setp.ne.b32 adds, %66, 0; "
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, "
        "%23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, "
        "%44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "%64, %65, adds, 1, 1, 0, %67; }"
        : BRAID_SUMS_8(0), BRAID_SUMS_8(8)
        : "l"(a), "l"(b), "r"(added), "n"(across ? 1 : 0));
  }
#elif !defined(__CUDACC__)
  on_cpu::multiply_later([=, &sums, boxes = shared_boxes()] {
    const unsigned lane = threadIdx.x % kWarp, first = threadIdx.x / kWarp % 4 * 16;
    for (unsigned n = 0; n < count; ++n) {
      for (unsigned i = 0; i < 4; ++i) {
        const unsigned row = first + lane / 4 + i / 2 * 8, column = 8 * n + 2 * (lane % 4) + i % 2;
        float& sum = sums[n].numbers[i];
        if (!adds) sum = 0;
        for (unsigned k = 0; k < 16; ++k)
          sum += described<false>(boxes, a, row, k) * described<across>(boxes, b, column, k);
      }
    }
  });
#endif
}
#undef BRAID_SUMS_8
#undef BRAID_SUMS

}  // namespace braid::kernels::cuda

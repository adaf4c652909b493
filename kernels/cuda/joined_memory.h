#pragma once

#include "kernels/cuda/side.h"
#include "kernels/cuda/warpgroup.h"

/// What the warpgroups of a joined product share (joined_product.cu).
namespace braid::kernels::cuda {

inline constexpr int kJoinedRows = 128, kJoinedDepth = kBoxColumns;
/// Ranks of an adapter that are added at once.
inline constexpr int kRanks = 32;
inline constexpr int kRankGap = 8;
inline constexpr unsigned kJoinedThreads = 3 * kWarpgroup;
inline constexpr unsigned kLoaders = kWarpgroup - kWarp, kMultiplyingWarps = 8;
/// Registers of the threads that bring and of those that multiply, out of the 168 that each thread begins with.
inline constexpr int kBringing = 104, kMultiplying = 200;
static_assert(kBringing + 2 * kMultiplying <= 3 * 168);

/// A product that is added to rows and columns of y.
struct Added {
  Side left, right;
  std::int64_t first_row, first_column, rows, columns, depth;
  float alpha;
  Drops drops;  // of what it adds
};

struct Joined {
  std::int64_t rows, columns, depth;
  Bf16* y;
  std::int64_t stride;
  const float* bias;  // or null
  const Added* added;
  std::int32_t count;  // of them
  std::int32_t row_tiles, column_tiles;
};

/// What the loaders tell of what they have put into a buffer: by what its product counts and how many ranks it is of,
/// or none, and whether it is the tile's last.
struct Loaded {
  float factor;
  std::int32_t ranks;
  bool last;
};

/// Shared memory of a block.
template <int columns, bool across>
struct JoinedMemory {
  static constexpr int kLeftBytes = kJoinedRows * kJoinedDepth * 2, kRightBytes = columns * kJoinedDepth * 2;
  static constexpr int kStages = columns == 256 ? 3 : 5;
  static constexpr int kLeftStride = kRanks + kRankGap, kRightStride = across ? columns + kRankGap : kRanks + kRankGap;

  /// A part of an adapter's product; and the tile's bias, with its last.
  struct Buffer {
    alignas(16) Bf16 left[kJoinedRows * kLeftStride];
    alignas(16) Bf16 right[across ? kRanks * kRightStride : columns * kRightStride];
    std::uint32_t mask[kJoinedRows][columns / 32];  // a bit of each number of the tile, set where it is added
    alignas(8) float bias[columns];
    Loaded loaded;
  };
  /// While one is read the other is filled.
  static constexpr int kBuffers = 2;
  struct Barriers {
    Barrier come[kStages], read[kStages], added_come[kBuffers], added_read[kBuffers];
  };

  unsigned char* boxes = shared_boxes();

  __device__ unsigned char* left(int stage) const { return boxes + stage * (kLeftBytes + kRightBytes); }
  __device__ unsigned char* right(int stage) const { return left(stage) + kLeftBytes; }
  __device__ Buffer& buffer(int place) const { return reinterpret_cast<Buffer*>(left(kStages))[place]; }
  __device__ Barriers& barriers() const { return *reinterpret_cast<Barriers*>(&buffer(kBuffers)); }

  static constexpr std::size_t kBytes =
      kStages * (kLeftBytes + kRightBytes) + kBuffers * sizeof(Buffer) + sizeof(Barriers);
  static_assert(sizeof(Buffer) % alignof(Barriers) == 0 && kBytes <= 227 << 10);
};

/// Tiles that are made at one time share rows and columns, which then come from the cache.
struct JoinedTile {
  std::int64_t first_row, first_column;
  template <int columns>
  __device__ static JoinedTile at(const Joined& joined, std::int32_t place) {
    constexpr std::int32_t kTogetherRows = 16;
    const std::int32_t each = kTogetherRows * joined.column_tiles, group = place / each;
    const std::int32_t first = group * kTogetherRows, within = place - group * each;
    const std::int32_t rows = joined.row_tiles - first < kTogetherRows ? joined.row_tiles - first : kTogetherRows;
    return {std::int64_t{first + within % rows} * kJoinedRows, std::int64_t{within / rows} * columns};
  }
};

/// Turns at a ring of memory: the place of each, and the parity of the phase in which it is filled.
template <int count>
struct Turn {
  std::uint32_t number = 0;
  __device__ int place() const { return static_cast<int>(number % count); }
  __device__ int before() const { return static_cast<int>((number + count - 1) % count); }
  __device__ unsigned parity() const { return number / count % 2; }
  __device__ void next() { ++number; }
};

}  // namespace braid::kernels::cuda

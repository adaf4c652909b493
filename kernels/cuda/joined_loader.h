#pragma once

#include "kernels/cuda/joined_memory.h"

/// What the warpgroup does that brings what the others of a joined product multiply.
namespace braid::kernels::cuda {

/// By one thread.
template <int columns, bool across>
__device__ void bring_tiles(const Joined& joined, const TileMap& left_map, const TileMap& right_map,
                            const JoinedMemory<columns, across>& memory) {
  using Memory = JoinedMemory<columns, across>;
  auto& barriers = memory.barriers();
  Turn<Memory::kStages> turn;
  const std::int32_t tiles = joined.row_tiles * joined.column_tiles;
  for (auto place = static_cast<std::int32_t>(blockIdx.x); place < tiles; place += static_cast<int>(gridDim.x)) {
    const JoinedTile tile = JoinedTile::at<columns>(joined, place);
    const auto row = static_cast<std::int32_t>(tile.first_row), column = static_cast<std::int32_t>(tile.first_column);
    const auto depth = static_cast<std::int32_t>(joined.depth);
    for (std::int32_t k = 0; k < depth; k += kJoinedDepth, turn.next()) {
      Barrier& come = barriers.come[turn.place()];
      barriers.read[turn.place()].await(turn.parity() ^ 1U);
      come.arrive_ahead_of(Memory::kLeftBytes + Memory::kRightBytes);
      copy_box<kJoinedRows>(left_map, row, k, memory.left(turn.place()), come);
      unsigned char* right = memory.right(turn.place());
      if constexpr (across) {
        for (int box = 0; box < columns / kBoxColumns; ++box)
          copy_box<kJoinedDepth>(right_map, k, column + box * kBoxColumns, right + box * kJoinedDepth * 128, come);
      } else {
        copy_box<columns>(right_map, column, k, right, come);
      }
    }
  }
}

/// What the loaders do, warps 1 to 3 of their warpgroup.
template <int columns, bool across>
class AddedLoader {
 public:
  using Memory = JoinedMemory<columns, across>;
  __device__ AddedLoader(const Joined& joined, const Memory& memory)
      : joined_(joined), memory_(memory), thread_(static_cast<int>(threadIdx.x - kWarp)) {}

  __device__ void load_all() {
    const std::int32_t tiles = joined_.row_tiles * joined_.column_tiles;
    for (auto place = static_cast<std::int32_t>(blockIdx.x); place < tiles; place += static_cast<int>(gridDim.x)) {
      tile_ = JoinedTile::at<columns>(joined_, place);
      std::int32_t number = next(0);
      // Of a tile that no product meets it is told, too.
      if (number == joined_.count) put(-1, 0, true);
      while (number < joined_.count) {
        const std::int32_t following = next(number + 1);
        const auto depth = static_cast<std::int32_t>(joined_.added[number].depth);
        for (std::int32_t k = 0; k < depth; k += kRanks)
          put(number, k, following == joined_.count && k + kRanks >= depth);
        number = following;
      }
    }
  }

 private:
  /// The first from `number` on that meets the tile; a lane looks at one.
  __device__ std::int32_t next(std::int32_t number) const {
    for (; number < joined_.count; number += static_cast<int>(kWarp)) {
      const std::int32_t own = number + static_cast<std::int32_t>(threadIdx.x % kWarp);
      const std::uint32_t meeting = __ballot_sync(0xFFFFFFFFU, own < joined_.count && meets(joined_.added[own]));
      if (meeting != 0) return number + __ffs(static_cast<int>(meeting)) - 1;
    }
    return joined_.count;
  }
  __device__ bool meets(const Added& added) const {
    return added.first_row < tile_.first_row + kJoinedRows && added.first_row + added.rows > tile_.first_row &&
           added.first_column < tile_.first_column + columns && added.first_column + added.columns > tile_.first_column;
  }

  /// Of the product of that number the ranks from k on.
  __device__ void put(std::int32_t number, std::int32_t k, bool last) {
    auto& buffer = memory_.buffer(turn_.place());
    memory_.barriers().added_read[turn_.place()].await(turn_.parity() ^ 1U);
    Loaded loaded{0, 0, last};
    if (number >= 0) {
      const Added& added = joined_.added[number];
      const auto depth = static_cast<std::int32_t>(added.depth);
      loaded.factor = added.alpha * added.drops.scale;
      loaded.ranks = depth - k < kRanks ? depth - k : kRanks;
      load_left(added, k, buffer.left);
      load_right(added, k, buffer.right);
      // Parts of one product have one mask, which each buffer gets once.
      if (k < Memory::kBuffers * kRanks) draw(added, buffer.mask);
    }
    if (last && joined_.bias) {
      for (int i = thread_; i < columns; i += kLoaders) {
        const std::int64_t column = tile_.first_column + i;
        buffer.bias[i] = column < joined_.columns ? joined_.bias[column] : 0.0F;
      }
    }
    if (thread_ == 0) buffer.loaded = loaded;
    memory_.barriers().added_come[turn_.place()].arrive();
    turn_.next();
  }

  __device__ void load_left(const Added& added, std::int32_t k, Bf16* to) const {
    constexpr int kAlong = kRanks / kTogether;
    load<kJoinedRows * kAlong, false>(added.left, static_cast<std::int32_t>(tile_.first_row - added.first_row), k,
                                      static_cast<std::int32_t>(added.depth), [to](int i) {
                                        return Place{i / kAlong, i % kAlong * kTogether,
                                                     to + i / kAlong * Memory::kLeftStride + i % kAlong * kTogether};
                                      });
  }
  __device__ void load_right(const Added& added, std::int32_t k, Bf16* to) const {
    constexpr int kAlong = kRanks / kTogether, kAcross = columns / kTogether;
    load<columns * kAlong, across>(
        added.right, static_cast<std::int32_t>(tile_.first_column - added.first_column), k,
        static_cast<std::int32_t>(added.depth), [to](int i) {
          const int row = across ? i % kAcross * kTogether : i / kAlong;
          const int within = across ? i / kAcross : i % kAlong * kTogether;
          return Place{row, within, to + (across ? within : row) * Memory::kRightStride + (across ? row : within)};
        });
  }
  /// Of a tile's row and of K, from the part's first on.
  struct Place {
    int row, k;
    Bf16* to;
  };
  /// Numbers of the matrix's rows from `first` on, and zeros before and behind them.
  template <int count, bool lies_across, typename PlaceOf>
  __device__ void load(const Side& side, std::int32_t first, std::int32_t k, std::int32_t depth,
                       const PlaceOf& place_of) const {
    const auto rows = static_cast<std::int32_t>(side.count);
    constexpr int kAtOnce = 4, kStep = static_cast<int>(kLoaders);
#pragma unroll 1
    for (int i = thread_; i < count; i += kAtOnce * kStep) {
      Together loaded[kAtOnce] = {};
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) {
        const Place place = place_of(i + n * kStep);
        const std::int32_t row = first + place.row;
        if (i + n * kStep < count && row >= 0 && row < rows && k + place.k < depth)
          loaded[n] = load_plain<lies_across>(side, row, k + place.k, depth);
      }
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n)
        if (i + n * kStep < count) *reinterpret_cast<Together*>(place_of(i + n * kStep).to) = loaded[n];
    }
  }

  /// Of 32 columns at once; what lies beyond the product's are zeros anyway.
  __device__ void draw(const Added& added, std::uint32_t (&mask)[kJoinedRows][columns / 32]) const {
    constexpr int kWords = columns / 32;
    const bool any = added.drops.any();
    const auto first_row = static_cast<std::int32_t>(tile_.first_row - added.first_row);
    const auto first_column = static_cast<std::int32_t>(tile_.first_column - added.first_column);
    const auto rows = static_cast<std::int32_t>(added.rows);
#pragma unroll 1
    for (int i = thread_; i < kJoinedRows * kWords; i += kLoaders) {
      const std::int32_t row = first_row + i / kWords, column = first_column + i % kWords * 32;
      // Rows of other tasks get nothing of this one, be it not a number.
      std::uint32_t kept = row >= 0 && row < rows ? 0xFFFFFFFFU : 0;
      if (any && kept != 0) kept = added.drops.kept_of_32(row, column);
      mask[i / kWords][i % kWords] = kept;
    }
  }

  const Joined& joined_;
  const Memory& memory_;
  JoinedTile tile_{};
  Turn<Memory::kBuffers> turn_;
  int thread_;
};

}  // namespace braid::kernels::cuda

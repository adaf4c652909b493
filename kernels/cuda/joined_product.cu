#include <algorithm>
#include <limits>

#include "kernels/cuda/joined_product.h"
#include "kernels/cuda/side.h"
#include "kernels/cuda/warpgroup.h"

// A block stays on its multiprocessor and makes tile after tile. Of its three warpgroups one brings what the others
// multiply: its first warp has the copy engine bring tiles of x and W, its others put a part of an adapter's product
// into shared memory, rounded, with zeros where the tile has other rows or columns, and draw what is dropped of it. So
// the way of an adapter's numbers takes no time of the two that multiply, 64 rows each: wgmma for x and W, and for the
// adapters, whose sums may be dropped before they are added, mma on the same registers, which lie alike.
namespace braid::kernels::cuda {
namespace {

constexpr int kJoinedRows = 128, kJoinedDepth = kBoxColumns;
/// Ranks of an adapter that are added at once.
constexpr int kRanks = 32;
constexpr int kRankGap = 8;
constexpr unsigned kJoinedThreads = 3 * kWarpgroup, kLoaders = kWarpgroup - kWarp, kMultiplyingWarps = 8;
/// Registers of the threads that bring and of those that multiply, out of the 168 that each thread begins with.
constexpr int kBringing = 72, kMultiplying = 216;
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

/// What the loaders tell of what they have loaded: a product's number, or -1, and whether it is the tile's last.
struct Loaded {
  std::int32_t added, ranks;
  bool last;
};

/// Shared memory of a block.
template <int columns, bool across>
struct JoinedMemory {
  static constexpr int kLeftBytes = kJoinedRows * kJoinedDepth * 2, kRightBytes = columns * kJoinedDepth * 2;
  static constexpr int kStages = columns == 256 ? 4 : 6;
  static constexpr int kLeftStride = kRanks + kRankGap, kRightStride = across ? columns + kRankGap : kRanks + kRankGap;
  static constexpr int kLeftNumbers = kJoinedRows * kLeftStride;
  static constexpr int kRightNumbers = across ? kRanks * kRightStride : columns * kRightStride;
  static constexpr int kMaskWords = kJoinedRows * columns / 32;

  unsigned char* boxes = shared_boxes();

  __device__ unsigned char* left(int stage) const { return boxes + stage * (kLeftBytes + kRightBytes); }
  __device__ unsigned char* right(int stage) const { return left(stage) + kLeftBytes; }
  __device__ Bf16* added_left() const { return reinterpret_cast<Bf16*>(left(kStages)); }
  __device__ Bf16* added_right() const { return added_left() + kLeftNumbers; }
  /// [rows, columns / 32]: a bit of each number of the tile, set where it is kept.
  __device__ std::uint32_t* mask() const { return reinterpret_cast<std::uint32_t*>(added_right() + kRightNumbers); }
  struct Barriers {
    Barrier come[kStages], read[kStages], added_come, added_read;
    Loaded loaded;
  };
  __device__ Barriers& barriers() const { return *reinterpret_cast<Barriers*>(mask() + kMaskWords); }

  static constexpr std::size_t kBytes =
      kStages * (kLeftBytes + kRightBytes) + 2 * (kLeftNumbers + kRightNumbers) + 4 * kMaskWords + sizeof(Barriers);
  static_assert(kBytes <= 227 << 10);
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
      if (number == joined_.count) put({-1, 0, true}, 0);
      while (number < joined_.count) {
        const std::int32_t following = next(number + 1);
        const auto depth = static_cast<std::int32_t>(joined_.added[number].depth);
        for (std::int32_t k = 0; k < depth; k += kRanks) {
          const std::int32_t ranks = depth - k < kRanks ? depth - k : kRanks;
          put({number, ranks, following == joined_.count && k + kRanks >= depth}, k);
        }
        number = following;
      }
    }
  }

 private:
  /// The first from `number` on that meets the tile.
  __device__ std::int32_t next(std::int32_t number) const {
    for (; number < joined_.count; ++number) {
      const Added& added = joined_.added[number];
      if (added.first_row < tile_.first_row + kJoinedRows && added.first_row + added.rows > tile_.first_row &&
          added.first_column < tile_.first_column + columns && added.first_column + added.columns > tile_.first_column)
        break;
    }
    return number;
  }

  __device__ void put(Loaded loaded, std::int32_t k) {
    auto& barriers = memory_.barriers();
    barriers.added_read.await(turn_.parity() ^ 1U);
    if (loaded.added >= 0) {
      const Added& added = joined_.added[loaded.added];
      load(added, k);
      if (k == 0) draw(added);
    }
    if (thread_ == 0) barriers.loaded = loaded;
    barriers.added_come.arrive();
    turn_.next();
  }

  __device__ void load(const Added& added, std::int32_t k) {
    constexpr int kAlong = kRanks / kTogether, kAcross = columns / kTogether;
    const auto first_row = static_cast<std::int32_t>(tile_.first_row - added.first_row);
    const auto rows = static_cast<std::int32_t>(added.rows);
#pragma unroll 1
    for (int i = thread_; i < kJoinedRows * kAlong; i += kLoaders) {
      const int row = i / kAlong, within = i % kAlong * kTogether;
      put_together<false>(added.left, first_row + row, rows, k + within, added.depth,
                          memory_.added_left() + row * Memory::kLeftStride + within);
    }
    const auto first_column = static_cast<std::int32_t>(tile_.first_column - added.first_column);
    const auto added_columns = static_cast<std::int32_t>(added.columns);
#pragma unroll 1
    for (int i = thread_; i < columns * kAlong; i += kLoaders) {
      const int column = across ? i % kAcross * kTogether : i / kAlong;
      const int within = across ? i / kAcross : i % kAlong * kTogether;
      put_together<across>(
          added.right, first_column + column, added_columns, k + within, added.depth,
          memory_.added_right() + (across ? within : column) * Memory::kRightStride + (across ? column : within));
    }
  }
  /// Zeros before and behind the product's rows.
  template <bool lies_across>
  __device__ static void put_together(const Side& side, std::int32_t row, std::int32_t rows, std::int64_t k,
                                      std::int64_t depth, Bf16* to) {
    Together together{};
    if (row >= 0 && row < rows) together = load_plain<lies_across>(side, row, k, depth);
    *reinterpret_cast<Together*>(to) = together;
  }

  /// Of 32 columns at once; what lies beyond the product's is nothing's.
  __device__ void draw(const Added& added) {
    constexpr int kWords = columns / 32;
    const bool any = added.drops.any();
    const auto first_row = static_cast<std::int32_t>(tile_.first_row - added.first_row);
    const auto first_column = static_cast<std::int32_t>(tile_.first_column - added.first_column);
    const auto rows = static_cast<std::int32_t>(added.rows);
#pragma unroll 1
    for (int i = thread_; i < kJoinedRows * kWords; i += kLoaders) {
      const std::int32_t row = first_row + i / kWords, column = first_column + i % kWords * 32;
      std::uint32_t kept = 0xFFFFFFFFU;
      if (any && row >= 0 && row < rows) kept = added.drops.kept_of_32(row, column);
      memory_.mask()[i] = kept;
    }
  }

  const Joined& joined_;
  const Memory& memory_;
  JoinedTile tile_{};
  Turn<1> turn_;
  int thread_;
};

/// Of four lanes each gives the i-th of its words to the i-th of them.
__device__ inline void exchange_among_four(std::uint32_t (&words)[4]) {
  const unsigned lane = threadIdx.x % 4;
#pragma unroll
  for (int distance = 1; distance < 4; distance *= 2) {
    const bool upper = (lane & static_cast<unsigned>(distance)) != 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if ((i & distance) != 0) continue;
      const std::uint32_t lower_word = words[i], upper_word = words[i | distance];
      const std::uint32_t got = __shfl_xor_sync(0xFFFFFFFFU, upper ? lower_word : upper_word, distance);
      words[i] = upper ? got : lower_word;
      words[i | distance] = upper ? upper_word : got;
    }
  }
}

/// What the warpgroups that multiply do.
template <int columns, bool across>
class Multiplier {
 public:
  using Memory = JoinedMemory<columns, across>;
  __device__ Multiplier(const Joined& joined, const Memory& memory) : joined_(joined), memory_(memory) {}

  __device__ void make_all() {
    const std::int32_t tiles = joined_.row_tiles * joined_.column_tiles;
    for (auto place = static_cast<std::int32_t>(blockIdx.x); place < tiles; place += static_cast<int>(gridDim.x)) {
      multiply();
      add();
      put(JoinedTile::at<columns>(joined_, place));
    }
  }

 private:
  __device__ static bool first_lane() { return threadIdx.x % kWarp == 0; }
  __device__ static int lane() { return static_cast<int>(threadIdx.x % kWarp); }
  __device__ static int own_row() { return static_cast<int>(threadIdx.x / kWarpgroup - 1) * 64; }
  __device__ static int warp_row() { return own_row() + static_cast<int>(threadIdx.x / kWarp % 4) * 16; }
  __device__ void leave(int stage) const {
    if (first_lane()) memory_.barriers().read[stage].arrive();
  }

  __device__ void multiply() {
    const auto depth = static_cast<std::int32_t>(joined_.depth);
    for (std::int32_t k = 0; k < depth; k += kJoinedDepth, turn_.next()) {
      memory_.barriers().come[turn_.place()].await(turn_.parity());
      const BoxedTile<false> left{memory_.left(turn_.place())};
      const BoxedTile<across> right{memory_.right(turn_.place())};
      open_products();
#pragma unroll
      for (int within = 0; within < kJoinedDepth; within += 16)
        begin_product<across>(sums_, left.template describe<kJoinedRows>(own_row(), within),
                              right.template describe < across ? kJoinedDepth : columns > (0, within),
                              k > 0 || within > 0);
      close_products();
      if (k == 0) continue;
      await_products<1>(sums_);
      leave(turn_.before());
    }
    await_products<0>(sums_);
    leave(turn_.before());
  }

  /// All that the tile meets.
  __device__ void add() {
    auto& barriers = memory_.barriers();
    for (bool last = false; !last; added_turn_.next()) {
      barriers.added_come.await(added_turn_.parity());
      if (barriers.loaded.added >= 0) add(joined_.added[barriers.loaded.added], barriers.loaded.ranks);
      last = barriers.loaded.last;
      __syncwarp();
      if (first_lane()) barriers.added_read.arrive();
    }
  }

  /// Its sums that are not dropped.
  __device__ void add(const Added& added, std::int32_t ranks) {
    const SharedTile<Memory::kLeftStride, false> left{memory_.added_left()};
    const SharedTile<Memory::kRightStride, across> right{memory_.added_right()};
    const float factor = added.alpha * added.drops.scale;
    const std::uint32_t* mask = memory_.mask() + (warp_row() + lane() / 4) * (columns / 32);
#pragma unroll 1
    for (int k = 0; k < ranks; k += 16) {
      const FragmentA a = left.a(warp_row(), k);
#pragma unroll
      for (int column = 0; column < columns; column += 16) {
        Sums products[2];
        FragmentB b[2];
        right.b(column, k, b);
        kernels::cuda::multiply(a, b[0], products[0]);
        kernels::cuda::multiply(a, b[1], products[1]);
#pragma unroll
        for (int lower = 0; lower < 2; ++lower) {
          // Of the lane's row, from its first column of these 16 on.
          const std::uint32_t kept = mask[lower * 8 * (columns / 32) + column / 32] >> (column % 32 + 2 * (lane() % 4));
#pragma unroll
          for (int eight = 0; eight < 2; ++eight) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
              const float product = products[eight].numbers[2 * lower + i];
              float& sum = sums_[column / 8 + eight].numbers[2 * lower + i];
              if ((kept >> (8 * eight + i) & 1U) != 0) sum += factor * product;
            }
          }
        }
      }
    }
  }

  /// Of 32 columns a lane has two of each eight, and writes eight.
  __device__ void put(const JoinedTile& tile) const {
    const auto left = static_cast<std::int32_t>(joined_.columns - tile.first_column);
    const int pair = 2 * (lane() % 4), own = 8 * (lane() % 4);
    const float* bias = joined_.bias ? joined_.bias + tile.first_column + pair : nullptr;
#pragma unroll
    for (int lower = 0; lower < 2; ++lower) {
      const std::int64_t row = tile.first_row + warp_row() + lane() / 4 + 8 * lower;
      Bf16* const to = joined_.y + row * joined_.stride + tile.first_column + own;
#pragma unroll
      for (int first = 0; first < columns; first += 32) {
        Together together;
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          const int eight = first + 8 * n;
          const float* sums = sums_[eight / 8].numbers + 2 * lower;
          const bool biased = bias && eight + pair < left;
          together.halves[n] =
              pack(Bf16(biased ? sums[0] + bias[eight] : sums[0]), Bf16(biased ? sums[1] + bias[eight + 1] : sums[1]));
        }
        exchange_among_four(together.halves);
        if (row < joined_.rows && first + own < left) *reinterpret_cast<Together*>(to + first) = together;
      }
    }
  }

  const Joined& joined_;
  const Memory& memory_;
  Turn<Memory::kStages> turn_;
  Turn<1> added_turn_;
  Sums sums_[columns / 8];
};

template <int columns, bool across>
__global__ void __launch_bounds__(kJoinedThreads, 1)
    joined_kernel(const __grid_constant__ Joined joined, const __grid_constant__ TileMap left_map,
                  const __grid_constant__ TileMap right_map) {
#if defined(BRAID_WARPGROUPS) || !defined(__CUDACC__)
  const JoinedMemory<columns, across> memory;
  auto& barriers = memory.barriers();
  if (threadIdx.x == 0) {
    for (Barrier& barrier : barriers.come) barrier.begin(1);
    for (Barrier& barrier : barriers.read) barrier.begin(kMultiplyingWarps);
    barriers.added_come.begin(kLoaders);
    barriers.added_read.begin(kMultiplyingWarps);
  }
  __syncthreads();
  if (threadIdx.x < kWarpgroup) {
    leave_registers<kBringing>();
    if (threadIdx.x == 0) bring_tiles(joined, left_map, right_map, memory);
    if (threadIdx.x >= kWarp) AddedLoader<columns, across>(joined, memory).load_all();
  } else {
    take_registers<kMultiplying>();
    Multiplier<columns, across>(joined, memory).make_all();
  }
#endif
}

bool is_bf16_on_16_bytes(ConstMatrix matrix) {
  return matrix.type == costmodel::DataType::bf16 && lies_on_16_bytes(matrix) && matrix.columns % kTogether == 0;
}

/// Where a part of y begins, in numbers from its first.
std::int64_t offset_in(ConstMatrix y, ConstMatrix part) {
  return static_cast<const Bf16*>(static_cast<const void*>(part.data)) -
         static_cast<const Bf16*>(static_cast<const void*>(y.data));
}

bool is_added(ConstMatrix y, Transpose transpose, const MatmulCall& call) {
  if (call.beta != 1 || call.c.type != costmodel::DataType::bf16 || call.c.stride != y.stride) return false;
  const std::int64_t offset = offset_in(y, call.c);
  if (offset < 0 || offset % y.stride + call.c.columns > y.columns || offset / y.stride + call.c.rows > y.rows)
    return false;
  return call.a_transpose == Transpose::no && call.b_transpose == transpose && call.c.stride == y.stride &&
         (transpose == Transpose::yes || offset % y.stride % kTogether == 0) &&
         (call.dropped == Dropped::nothing || call.dropped == Dropped::sum);
}

template <int columns, bool across>
void run_joined(ConstMatrix x, ConstMatrix weight, Joined joined, std::span<const Added> added) {
  constexpr auto tiles = [](std::int64_t count, std::int64_t each) {
    return static_cast<std::int32_t>((count + each - 1) / each);
  };
  joined.row_tiles = tiles(joined.rows, kJoinedRows), joined.column_tiles = tiles(joined.columns, columns);
  const Numbers<Added> staged(added);
  joined.added = staged.data(), joined.count = static_cast<std::int32_t>(added.size());
  const std::int32_t blocks = std::min(joined.row_tiles * joined.column_tiles, multiprocessors());
  launch(joined_kernel<columns, across>, dim3(static_cast<unsigned>(blocks)), kJoinedThreads,
         JoinedMemory<columns, across>::kBytes, joined, map_tiles(x, kJoinedRows),
         map_tiles(weight, across ? kJoinedDepth : columns));
}

}  // namespace

bool can_join(ConstMatrix x, ConstMatrix weight, Transpose transpose, ConstMatrix y,
              std::span<const MatmulCall> added) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  return has_warpgroups() && is_bf16_on_16_bytes(x) && is_bf16_on_16_bytes(weight) && is_bf16_on_16_bytes(y) &&
         x.rows < kMost && x.columns > 0 && x.columns < kMost && y.columns < kMost &&
         std::all_of(added.begin(), added.end(), [&](const MatmulCall& call) { return is_added(y, transpose, call); });
}

void joined_product(ConstMatrix x, ConstMatrix weight, Transpose transpose, ConstVector bias, Matrix y,
                    std::span<const MatmulCall> added) {
  const bool across = transpose == Transpose::no;
  BRAID_CHECK(can_join(x, weight, transpose, y, added), "{} products cannot be joined to one of [{}, {}]", added.size(),
              y.rows, y.columns);
  BRAID_CHECK(x.rows == y.rows && (across ? weight.rows : weight.columns) == x.columns &&
                  (across ? weight.columns : weight.rows) == y.columns &&
                  (bias.empty() || std::ssize(bias.span()) == y.columns),
              "a product of depth {} to [{}, {}]", x.columns, y.rows, y.columns);
  if (y.rows == 0 || y.columns == 0) return;
  const DropTables drops(added);
  std::vector<Added> all;
  for (const MatmulCall& call : added) {
    if (call.c.rows == 0 || call.c.columns == 0 || call.a.columns == 0) continue;
    const std::int64_t offset = offset_in(y, call.c);
    all.push_back({side(call.a, false, {}), side(call.b, across, {}), offset / y.stride, offset % y.stride, call.c.rows,
                   call.c.columns, call.a.columns, call.alpha, drops.of(call, Dropped::sum, call.c.rows)});
  }
  const Joined joined{
      y.rows, y.columns, x.columns, static_cast<Bf16*>(static_cast<void*>(y.data)), y.stride, bias.data(), nullptr,
      0,      0,         0};
  // Wide tiles read least, unless they leave multiprocessors without any.
  const bool wide = (y.rows + kJoinedRows - 1) / kJoinedRows * ((y.columns + 255) / 256) >= multiprocessors();
  if (across) {
    wide ? run_joined<256, true>(x, weight, joined, all) : run_joined<128, true>(x, weight, joined, all);
  } else {
    wide ? run_joined<256, false>(x, weight, joined, all) : run_joined<128, false>(x, weight, joined, all);
  }
}

}  // namespace braid::kernels::cuda

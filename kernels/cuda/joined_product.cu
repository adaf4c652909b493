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
constexpr unsigned kJoinedThreads = 3 * kWarpgroup;
[[maybe_unused]] constexpr unsigned kLoaders = kWarpgroup - kWarp, kMultiplyingWarps = 8;
/// Registers of the threads that bring and of those that multiply, out of the 168 that each thread begins with.
constexpr int kBringing = 104, kMultiplying = 200;
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

/// Of four lanes each gives the i-th of its words to the i-th of them.
[[maybe_unused]] __device__ inline void exchange_among_four(std::uint32_t (&words)[4]) {
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

  /// All that the tile meets, and its bias.
  __device__ void add() {
    auto& barriers = memory_.barriers();
    for (bool last = false; !last; added_turn_.next()) {
      const auto& buffer = memory_.buffer(added_turn_.place());
      barriers.added_come[added_turn_.place()].await(added_turn_.parity());
      last = buffer.loaded.last;
      if (buffer.loaded.ranks > 0) add(buffer, buffer.loaded.factor, buffer.loaded.ranks);
      if (last && joined_.bias) add_bias(buffer.bias);
      __syncwarp();
      if (first_lane()) barriers.added_read[added_turn_.place()].arrive();
    }
  }

  /// Its sums that are not dropped.
  __device__ void add(const typename Memory::Buffer& buffer, float factor, std::int32_t ranks) {
    const SharedTile<Memory::kLeftStride, false> left{buffer.left};
    const SharedTile<Memory::kRightStride, across> right{buffer.right};
    const int row = warp_row() + lane() / 4;
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
          const std::uint32_t kept = buffer.mask[row + 8 * lower][column / 32] >> (column % 32 + 2 * (lane() % 4));
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

  __device__ void add_bias(const float* bias) {
    const int pair = 2 * (lane() % 4);
#pragma unroll
    for (int eight = 0; eight < columns / 8; ++eight) {
#pragma unroll
      for (int i = 0; i < 4; ++i) sums_[eight].numbers[i] += bias[8 * eight + pair + i % 2];
    }
  }

  /// Of 32 columns a lane has two of each eight, and writes eight.
  __device__ void put(const JoinedTile& tile) const {
    const auto left = static_cast<std::int32_t>(joined_.columns - tile.first_column);
    const int own = 8 * (lane() % 4);
#pragma unroll
    for (int lower = 0; lower < 2; ++lower) {
      const std::int64_t row = tile.first_row + warp_row() + lane() / 4 + 8 * lower;
      Bf16* const to = joined_.y + row * joined_.stride + tile.first_column + own;
#pragma unroll
      for (int first = 0; first < columns; first += 32) {
        Together together;
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          const float* sums = sums_[first / 8 + n].numbers + 2 * lower;
          together.halves[n] = pack(Bf16(sums[0]), Bf16(sums[1]));
        }
        exchange_among_four(together.halves);
        if (row < joined_.rows && first + own < left) *reinterpret_cast<Together*>(to + first) = together;
      }
    }
  }

  const Joined& joined_;
  const Memory& memory_;
  Turn<Memory::kStages> turn_;
  Turn<Memory::kBuffers> added_turn_;
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
    for (Barrier& barrier : barriers.added_come) barrier.begin(kLoaders);
    for (Barrier& barrier : barriers.added_read) barrier.begin(kMultiplyingWarps);
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
#else
  __trap();  // what was built for sm_90 alone has no such instructions
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
  // Wide tiles, of twice the time, read least; narrow ones may leave fewer multiprocessors idle at the end.
  const auto turns = [&](std::int64_t columns) {
    const std::int64_t tiles = (y.rows + kJoinedRows - 1) / kJoinedRows * ((y.columns + columns - 1) / columns);
    return (tiles + multiprocessors() - 1) / multiprocessors();
  };
  const bool wide = 20 * turns(256) <= 11 * turns(128);
  if (across) {
    wide ? run_joined<256, true>(x, weight, joined, all) : run_joined<128, true>(x, weight, joined, all);
  } else {
    wide ? run_joined<256, false>(x, weight, joined, all) : run_joined<128, false>(x, weight, joined, all);
  }
}

}  // namespace braid::kernels::cuda

#include <algorithm>
#include <limits>

#include "kernels/cuda/joined_loader.h"
#include "kernels/cuda/joined_product.h"

// A block stays on its multiprocessor and makes tile after tile. Of its three warpgroups one brings what the others
// multiply: its first warp has the copy engine bring tiles of x and W, its others put a part of an adapter's product
// into shared memory, rounded, with zeros where the tile has other rows or columns, and draw what is dropped of it. So
// the way of an adapter's numbers takes no time of the two that multiply, 64 rows each: wgmma for x and W, and for the
// adapters, whose sums may be dropped before they are added, mma on the same registers, which lie alike.
namespace braid::kernels::cuda {
namespace {

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

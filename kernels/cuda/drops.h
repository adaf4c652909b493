#pragma once

#include <cstddef>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>

#include "kernels/cuda/simt.h"
#include "kernels/matmul.h"

namespace braid::kernels::cuda {

struct Words {
  std::uint32_t word[4];
};

struct Halves {
  std::uint32_t lower, upper;
};
__device__ inline Halves multiply_wide(std::uint32_t a, std::uint32_t b) {
#ifdef __CUDA_ARCH__
  Halves product;
  asm("{ .reg .u64 product; mul.wide.u32 product, %2, %3; mov.b64 {%0, %1}, product; }"
      : "=r"(product.lower), "=r"(product.upper)
      : "r"(a), "r"(b));
  return product;
#else
  const std::uint64_t product = std::uint64_t{a} * b;
  return {static_cast<std::uint32_t>(product), static_cast<std::uint32_t>(product >> 32)};
#endif
}

/// philox of base/random.h.
__device__ inline Words philox_words(Words counter, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const Halves product0 = multiply_wide(0xD2511F53U, counter.word[0]);
    const Halves product1 = multiply_wide(0xCD9E8D57U, counter.word[2]);
    counter = {{product1.upper ^ counter.word[1] ^ key0, product1.lower, product0.upper ^ counter.word[3] ^ key1,
                product0.lower}};
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return counter;
}

/// DropoutRows as kernels read them.
struct Drops {
  const std::int32_t* positions = nullptr;  ///< null: nothing is dropped
  const std::int64_t* samples = nullptr;
  std::uint64_t key = 0, dropped_below = 0;
  std::int64_t first_column = 0;
  float scale = 1;

  __device__ bool any() const { return positions != nullptr; }
  /// Which of the four numbers of a draw are kept, a bit each: those of columns 4 draw + {0, 1, 2, 3} of the matrix
  /// that begins at column 0.
  __device__ std::uint32_t kept_of(std::int64_t row, std::int64_t draw) const {
    const auto sample = static_cast<std::uint64_t>(samples[row]);
    const Words words = philox_words({{static_cast<std::uint32_t>(draw), static_cast<std::uint32_t>(positions[row]),
                                       static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(sample >> 32)}},
                                     static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32));
    std::uint32_t kept = 0;
    // A choice that is shifted, (c ? 0 : 1) << j, is compiled wrongly by GCC 12 under -fsanitize=shift.
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (words.word[j] >= dropped_below) kept |= 1U << j;
    return kept;
  }
  /// The same of the columns [column, column + 8).
  __device__ std::uint32_t kept_together(std::int64_t row, std::int64_t column) const {
    const std::int64_t first = first_column + column, within = first % 4;
    std::uint32_t kept = kept_of(row, first / 4) | kept_of(row, first / 4 + 1) << 4;
    if (within > 0) kept |= kept_of(row, first / 4 + 2) << 8;
    return kept >> within & 0xFFU;
  }
  /// And of the columns [column, column + 32), which may begin before the first, draw by draw: in few registers.
  __device__ std::uint32_t kept_of_32(std::int64_t row, std::int64_t column) const {
    const std::int64_t first = first_column + column;
    std::uint64_t kept = 0;
#pragma unroll 1
    for (int draw = 0; draw < ((first & 3) == 0 ? 8 : 9); ++draw)
      kept |= static_cast<std::uint64_t>(kept_of(row, (first >> 2) + draw)) << (4 * draw);
    return static_cast<std::uint32_t>(kept >> (first & 3));
  }
  /// What a thread drew last: of neighbours in a row four share a draw.
  struct Drawn {
    std::int64_t row = -1, draw = -1;
    std::uint32_t kept = 0;
  };
  /// A number, as it is after.
  __device__ float of(float number, std::int64_t row, std::int64_t column, Drawn& drawn) const {
    const std::int64_t place = first_column + column;
    if (row != drawn.row || place / 4 != drawn.draw) drawn = {row, place / 4, kept_of(row, place / 4)};
    return (drawn.kept >> (place % 4) & 1U) == 0 ? 0.0F : number * scale;
  }
};

/// The part of it that does not lie in tables.
inline Drops drops_of(const DropoutRows& rows) {
  // A word below p · 2³² is one below the next whole number.
  const double bound = static_cast<double>(rows.probability) * 0x1p32;
  Drops drops;
  drops.key = rows.key;
  drops.dropped_below = static_cast<std::uint64_t>(bound);
  if (static_cast<double>(drops.dropped_below) < bound) ++drops.dropped_below;
  drops.first_column = rows.first_column;
  drops.scale = 1.0F / (1.0F - rows.probability);
  return drops;
}

/// What calls say of the rows of matrices that they drop of, on the device; those that lie at one place once.
class DropTables {
 public:
  explicit DropTables(std::span<const MatmulCall> calls) {
    std::vector<std::int32_t> positions;
    std::vector<std::int64_t> samples;
    for (const MatmulCall& call : calls) {
      if (call.dropped == Dropped::nothing) continue;
      BRAID_CHECK(call.drop.positions.size() == call.drop.samples.size(), "{} positions and {} samples",
                  call.drop.positions.size(), call.drop.samples.size());
      if (!places_.try_emplace(place_of(call.drop), std::ssize(positions)).second) continue;
      positions.insert(positions.end(), call.drop.positions.begin(), call.drop.positions.end());
      samples.insert(samples.end(), call.drop.samples.begin(), call.drop.samples.end());
    }
    if (positions.empty()) return;
    std::vector<std::byte> both(samples.size() * sizeof(std::int64_t) + positions.size() * sizeof(std::int32_t));
    std::memcpy(both.data(), samples.data(), samples.size() * sizeof(std::int64_t));
    std::memcpy(both.data() + samples.size() * sizeof(std::int64_t), positions.data(),
                positions.size() * sizeof(std::int32_t));
    both_.emplace(std::span<const std::byte>(both));
    samples_ = reinterpret_cast<const std::int64_t*>(both_->data());
    positions_ = reinterpret_cast<const std::int32_t*>(samples_ + samples.size());
  }

  /// What the call drops of `which`, whose memory has so many rows.
  Drops of(const MatmulCall& call, Dropped which, std::int64_t rows) const {
    if (call.dropped != which || rows == 0) return {};
    BRAID_CHECK(std::ssize(call.drop.positions) == rows, "{} positions of {} rows", call.drop.positions.size(), rows);
    Drops drops = drops_of(call.drop);
    const std::int64_t first = places_.at(place_of(call.drop));
    drops.positions = positions_ + first, drops.samples = samples_ + first;
    return drops;
  }

 private:
  using Place = std::tuple<const std::int32_t*, const std::int64_t*, std::size_t>;
  static Place place_of(const DropoutRows& rows) {
    return {rows.positions.data(), rows.samples.data(), rows.positions.size()};
  }

  std::map<Place, std::int64_t> places_;
  std::optional<Numbers<std::byte>> both_;  // samples, then positions, in one copy
  const std::int64_t* samples_ = nullptr;
  const std::int32_t* positions_ = nullptr;
};

}  // namespace braid::kernels::cuda

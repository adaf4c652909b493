#include "kernels/dropout.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <cmath>

#include "kernels/cpu/lanes.h"
#include "kernels/cpu/rows.h"

namespace braid::kernels::cpu {
namespace {

typedef std::uint32_t WordLanes __attribute__((vector_size(kLanes * sizeof(std::uint32_t))));
/// 64 bits a lane; where a comment says so just the low 32 count.
typedef std::uint64_t WideLanes __attribute__((vector_size(kLanes * sizeof(std::uint32_t))));

constexpr std::int64_t kWideLanes = kLanes / 2;
/// Registers of blocks drawn together, as a block's rounds wait for each other.
constexpr std::int64_t kTogether = 4;
/// A block gives four words, so a register of blocks gives two registers of words.
constexpr std::int64_t kRegisters = 2 * kTogether;

/// The products of the low 32 bits, which compilers make no single instruction of unasked. The form with a mask spares
/// us GCC 12's warning about the other's undefined operand.
WideLanes multiply_low(WideLanes a, WideLanes b) {
#if defined(__AVX512F__)
  return std::bit_cast<WideLanes>(_mm512_maskz_mul_epu32(0xFF, std::bit_cast<__m512i>(a), std::bit_cast<__m512i>(b)));
#elif defined(__AVX2__)
  return std::bit_cast<WideLanes>(_mm256_mul_epu32(std::bit_cast<__m256i>(a), std::bit_cast<__m256i>(b)));
#else
  return (a & 0xFFFFFFFF) * (b & 0xFFFFFFFF);
#endif
}

struct Counter {
  WideLanes words[4];  // low 32 bits
};

/// philox of base/random.h on kTogether registers of counters.
void mix(Counter (&counters)[kTogether], std::uint64_t key) {
  const WideLanes multiplier0 = WideLanes{} + 0xD2511F53, multiplier1 = WideLanes{} + 0xCD9E8D57;
  std::uint32_t key0 = static_cast<std::uint32_t>(key), key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (Counter& counter : counters) {
      WideLanes(&words)[4] = counter.words;
      const WideLanes product0 = multiply_low(words[0], multiplier0);
      const WideLanes product1 = multiply_low(words[2], multiplier1);
      words[0] = (product1 >> 32) ^ words[1] ^ key0;
      words[1] = product1;
      words[2] = (product0 >> 32) ^ words[3] ^ key1;
      words[3] = product0;
    }
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
}

/// Lane i of the result is a's or b's lane (first + i) / 2, in turn.
template <std::size_t First>
WideLanes interleave(WideLanes a, WideLanes b) {
  return [&]<std::size_t... lane>(std::index_sequence<lane...>) {
    return __builtin_shufflevector(a, b, static_cast<int>((First + lane) / 2 + (lane % 2 ? kWideLanes : 0))...);
  }
  (std::make_index_sequence<kWideLanes>());
}

/// The words that decide elements 4 · first_block and on.
void draw(std::int64_t first_block, std::uint32_t position, std::uint64_t sample, std::uint64_t key,
          WordLanes (&drawn)[kRegisters]) {
  Counter counters[kTogether];
  for (std::int64_t i = 0; i < kTogether; ++i) {
    for (std::int64_t lane = 0; lane < kWideLanes; ++lane) {
      counters[i].words[0][lane] = static_cast<std::uint32_t>(first_block + i * kWideLanes + lane);
    }
    counters[i].words[1] = WideLanes{} + position;
    counters[i].words[2] = WideLanes{} + (sample & 0xFFFFFFFF);
    counters[i].words[3] = WideLanes{} + (sample >> 32);
  }
  mix(counters, key);
  for (std::int64_t i = 0; i < kTogether; ++i) {
    const WideLanes(&words)[4] = counters[i].words;
    const WideLanes first_two = (words[0] & 0xFFFFFFFF) | (words[1] << 32);
    const WideLanes last_two = (words[2] & 0xFFFFFFFF) | (words[3] << 32);
    drawn[2 * i] = std::bit_cast<WordLanes>(interleave<0>(first_two, last_two));
    drawn[2 * i + 1] = std::bit_cast<WordLanes>(interleave<kWideLanes>(first_two, last_two));
  }
}

}  // namespace

void dropout(const DropoutRows& rows, ConstMatrix x, bool accumulate, Matrix y) {
  BRAID_CHECK(x.rows == y.rows && x.columns == y.columns, "[{}, {}] to [{}, {}]", x.rows, x.columns, y.rows, y.columns);
  BRAID_CHECK(std::ssize(rows.positions) == x.rows && std::ssize(rows.samples) == x.rows,
              "{} positions and {} samples for {} rows", rows.positions.size(), rows.samples.size(), x.rows);
  BRAID_CHECK(0.0F <= rows.probability && rows.probability < 1.0F, "probability {}", rows.probability);
  if (rows.first_column % 4 != 0) return reference::dropout(rows, x, accumulate, y);  // in the middle of a block
  const auto dropped_below = static_cast<std::uint32_t>(std::ceil(static_cast<double>(rows.probability) * 0x1p32));
  const float scale = 1.0F / (1.0F - rows.probability);
  for_rows(x.rows, kCopies * x.columns, [&](std::int64_t t) {
    const auto position = static_cast<std::uint32_t>(rows.positions[static_cast<std::size_t>(t)]);
    const auto sample = static_cast<std::uint64_t>(rows.samples[static_cast<std::size_t>(t)]);
    const float* from = x.row(t);
    float* to = y.row(t);
    WordLanes drawn[kRegisters];
    for_lanes(x.columns, [&](std::int64_t i, std::int64_t count) {
      const std::int64_t at = i / kLanes % kRegisters;
      if (at == 0) draw((rows.first_column + i) / 4, position, sample, rows.key, drawn);
      const Lanes kept = drawn[at] < dropped_below ? Lanes{} : load(from + i, count) * scale;
      store(to + i, accumulate ? load(to + i, count) + kept : kept, count);
    });
  });
}

}  // namespace braid::kernels::cpu

#pragma once

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

namespace braid::kernels::cpu {

/// One vector register of f32 numbers, as wide as the instructions that we compile for.
///
/// Loops over rows take the rest of a row through the same vector code (`load` and `store` of fewer numbers), never
/// through a scalar twin: so what an element becomes does not depend on where it stands, nor on its alignment.
#if defined(__AVX512F__)
inline constexpr std::int64_t kLanes = 16;
#elif defined(__AVX__)
inline constexpr std::int64_t kLanes = 8;
#else
inline constexpr std::int64_t kLanes = 4;
#endif
typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));
typedef std::int32_t IntegerLanes __attribute__((vector_size(kLanes * sizeof(std::int32_t))));

inline std::int64_t round_up_to_lanes(std::int64_t count) {
  return (count + kLanes - 1) / kLanes * kLanes;
}

inline Lanes broadcast(float x) {
  return x - Lanes{};
}

inline Lanes load(const float* from) {
  Lanes x;
  std::memcpy(&x, from, sizeof(x));
  return x;
}

inline void store(float* to, Lanes x) {
  std::memcpy(to, &x, sizeof(x));
}

/// The first `count` lanes; `otherwise` in the rest. Nothing past them is read.
inline Lanes load(const float* from, std::int64_t count, float otherwise = 0.0F) {
  if (count == kLanes) return load(from);
#if defined(__AVX512F__)
  const auto mask = static_cast<__mmask16>((1U << count) - 1);
  return std::bit_cast<Lanes>(_mm512_mask_loadu_ps(std::bit_cast<__m512>(broadcast(otherwise)), mask, from));
#else
  Lanes x = broadcast(otherwise);
  std::memcpy(&x, from, static_cast<std::size_t>(count) * sizeof(float));
  return x;
#endif
}

/// Nothing past the first `count` lanes is written.
inline void store(float* to, Lanes x, std::int64_t count) {
  if (count == kLanes) return store(to, x);
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1U << count) - 1), std::bit_cast<__m512>(x));
#else
  std::memcpy(to, &x, static_cast<std::size_t>(count) * sizeof(float));
#endif
}

/// Calls body(first, count) for each register's worth of `columns` numbers; count < kLanes in the last alone.
template <typename Body>
void for_lanes(std::int64_t columns, const Body& body) {
  std::int64_t first = 0;
  for (; first + kLanes <= columns; first += kLanes) body(first, kLanes);
  if (first < columns) body(first, columns - first);
}

inline Lanes greater(Lanes a, Lanes b) {
  return a < b ? b : a;
}

/// Folds the lanes in halves, always in this order.
template <std::size_t Width = kLanes / 2, typename Fold>
Lanes fold_lanes(Lanes x, const Fold& fold) {
  const Lanes swapped = [&]<std::size_t... lane>(std::index_sequence<lane...>) {
    return __builtin_shufflevector(x, x, static_cast<int>(lane ^ Width)...);
  }
  (std::make_index_sequence<kLanes>());
  const Lanes folded = fold(x, swapped);
  if constexpr (Width > 1) return fold_lanes<Width / 2>(folded, fold);
  return folded;
}

inline float sum(Lanes x) {
  return fold_lanes(x, [](Lanes a, Lanes b) { return a + b; })[0];
}

inline float greatest(Lanes x) {
  return fold_lanes(x, greater)[0];
}

/// Transposes a square of kLanes rows in place: blocks off the diagonal change places, at half the width each time.
template <std::size_t Width = kLanes / 2>
void transpose(Lanes (&rows)[kLanes]) {
  [&]<std::size_t... lane>(std::index_sequence<lane...>) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      if (i & Width) continue;
      const Lanes upper = rows[i], lower = rows[i + Width];
      rows[i] = __builtin_shufflevector(upper, lower, static_cast<int>(lane & Width ? kLanes + lane - Width : lane)...);
      rows[i + Width] =
          __builtin_shufflevector(upper, lower, static_cast<int>(lane & Width ? kLanes + lane : lane + Width)...);
    }
  }
  (std::make_index_sequence<kLanes>());
  if constexpr (Width > 1) transpose<Width / 2>(rows);
}

/// e^x within 2 units in the last place: 0 where that is below the normal numbers, infinite where it overflows.
/// The degree-5 polynomial of Cephes' expf on |r| <= ln 2 / 2, after x = n ln 2 + r with ln 2 in two parts.
inline Lanes exponential(Lanes x) {
  constexpr float kLeast = -87.33654F;
  constexpr float kMost = 89.0F;
  // Adding 1.5 · 2^23 rounds to an integer, and leaves it in the low bits.
  constexpr float kRounder = 12582912.0F;
  const Lanes least = broadcast(kLeast), most = broadcast(kMost);
  Lanes bounded = x < least ? least : x;
  bounded = bounded > most ? most : bounded;
  const Lanes shifted = bounded * 1.44269504F + kRounder;
  const Lanes n = shifted - kRounder;
  const Lanes r = (bounded - n * 0.693359375F) + n * 2.12194440e-4F;
  Lanes polynomial = broadcast(1.9875691500e-4F);
  polynomial = polynomial * r + 1.3981999507e-3F;
  polynomial = polynomial * r + 8.3334519073e-3F;
  polynomial = polynomial * r + 4.1665795894e-2F;
  polynomial = polynomial * r + 1.6666665459e-1F;
  polynomial = polynomial * r + 5.0000001201e-1F;
  polynomial = polynomial * (r * r) + r + 1.0F;
  // The power of two in two factors, since 2^128 is not a number yet e^88.7 is.
  const IntegerLanes exponent = std::bit_cast<IntegerLanes>(shifted) - std::bit_cast<std::int32_t>(kRounder);
  const IntegerLanes half = exponent >> 1;
  const Lanes low = std::bit_cast<Lanes>((half + 127) << 23);
  const Lanes high = std::bit_cast<Lanes>((exponent - half + 127) << 23);
  return x < least ? Lanes{} : polynomial * low * high;
}

}  // namespace braid::kernels::cpu

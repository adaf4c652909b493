#include "exec/data_type.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace braid::exec {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// What 16 bits of IEEE binary16 mean, by the definition.
double f16_value(std::uint16_t bits) {
  const double sign = bits & 0x8000 ? -1 : 1;
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent == 31) return fraction ? std::nan("") : sign * kInfinity;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

double bf16_value(std::uint16_t bits) {
  const double sign = bits & 0x8000 ? -1 : 1;
  const int exponent = (bits >> 7) & 255, fraction = bits & 127;
  if (exponent == 255) return fraction ? std::nan("") : sign * kInfinity;
  if (exponent == 0) return sign * std::ldexp(fraction, -133);
  return sign * std::ldexp(128 + fraction, exponent - 134);
}

template <typename Value, typename Widen, typename Narrow>
void every_number_survives(Value value, Widen widen_one, Narrow narrow_one) {
  for (int i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float wide = widen_one(bits);
    if (std::isnan(value(bits))) {
      EXPECT_TRUE(std::isnan(wide)) << i;
      EXPECT_TRUE(std::isnan(value(narrow_one(wide)))) << i;
      continue;
    }
    EXPECT_EQ(static_cast<double>(wide), value(bits)) << i;
    EXPECT_EQ(std::signbit(wide), (bits & 0x8000) != 0) << i;
    EXPECT_EQ(narrow_one(wide), bits) << i;
  }
}

TEST(DataType, EveryF16Survives) {
  every_number_survives(f16_value, f32_from_f16, f16_from_f32);
}

TEST(DataType, EveryBf16Survives) {
  every_number_survives(bf16_value, f32_from_bf16, bf16_from_f32);
}

/// Halfway between neighbours the even one is taken, and a hair beside it the nearer one.
template <typename Value, typename Narrow>
void halves_round_to_even(Value value, Narrow narrow_one, int largest) {
  for (int i = 0; i < largest; ++i) {
    const auto low = static_cast<std::uint16_t>(i), high = static_cast<std::uint16_t>(i + 1);
    const auto half = static_cast<float>((value(low) + value(high)) / 2);
    ASSERT_EQ(static_cast<double>(half), (value(low) + value(high)) / 2);
    const std::uint16_t even = i % 2 == 0 ? low : high;
    EXPECT_EQ(narrow_one(half), even) << i;
    EXPECT_EQ(narrow_one(-half), even | 0x8000) << i;
    EXPECT_EQ(narrow_one(std::nextafter(half, 0.0F)), low) << i;
    EXPECT_EQ(narrow_one(std::nextafter(half, kInfinity)), high) << i;
  }
}

TEST(DataType, F16RoundsToNearestEven) {
  halves_round_to_even(f16_value, f16_from_f32, 0x7BFF);
  EXPECT_EQ(f16_from_f32(std::nextafter(65520.0F, 0.0F)), 0x7BFF);
  EXPECT_EQ(f16_from_f32(65520.0F), 0x7C00);
  EXPECT_EQ(f16_from_f32(-1e30F), 0xFC00);
  EXPECT_EQ(f16_from_f32(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(f16_from_f32(0x1p-25F), 0) << "half of the least number, to even";
}

TEST(DataType, Bf16RoundsToNearestEven) {
  halves_round_to_even(bf16_value, bf16_from_f32, 0x7F7F);
  EXPECT_EQ(bf16_from_f32(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_TRUE(std::isnan(f32_from_bf16(bf16_from_f32(std::bit_cast<float>(0x7F800001U)))));
}

TEST(DataType, NarrowingIsMonotone) {
  RandomStream random(1);
  for (int i = 0; i < 100000; ++i) {
    const auto a = std::bit_cast<float>(random.next_word()), b = std::bit_cast<float>(random.next_word());
    if (std::isnan(a) || std::isnan(b)) continue;
    EXPECT_LE(f32_from_f16(f16_from_f32(std::min(a, b))), f32_from_f16(f16_from_f32(std::max(a, b))));
    EXPECT_LE(f32_from_bf16(bf16_from_f32(std::min(a, b))), f32_from_bf16(bf16_from_f32(std::max(a, b))));
  }
}

TEST(DataType, NamesRoundTrip) {
  for (int i = 0; i < static_cast<int>(DataType::unknown); ++i) {
    const auto type = static_cast<DataType>(i);
    EXPECT_EQ(dtype_of(dtype_name(type)), type) << i;
  }
  EXPECT_FALSE(dtype_of("F8_E4M3"));
  EXPECT_FALSE(dtype_of("f32"));
}

TEST(DataType, WidenAndNarrowUndoEachOther) {
  const std::vector<float> numbers = {0.0F, -1.5F, 0x1p-14F, 0x1p-24F, 42.0F};
  for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) {
    std::vector<std::byte> bytes(numbers.size() * static_cast<std::size_t>(bytes_per_number(type)));
    narrow(type, numbers, bytes);
    std::vector<float> back(numbers.size());
    widen(type, bytes, back);
    EXPECT_EQ(back, numbers) << dtype_name(type);
  }
}

}  // namespace
}  // namespace braid::exec

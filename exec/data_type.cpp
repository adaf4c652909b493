#include "exec/data_type.h"

#include <array>
#include <bit>
#include <cstring>

#include "base/error.h"

namespace braid::exec {
namespace {

struct TypeRow {
  DataType type;
  std::string_view name;
  std::int64_t bytes;
};

constexpr std::array<TypeRow, 13> kTypes = {{{DataType::f64, "F64", 8},
                                             {DataType::f32, "F32", 4},
                                             {DataType::f16, "F16", 2},
                                             {DataType::bf16, "BF16", 2},
                                             {DataType::i64, "I64", 8},
                                             {DataType::i32, "I32", 4},
                                             {DataType::i16, "I16", 2},
                                             {DataType::i8, "I8", 1},
                                             {DataType::u64, "U64", 8},
                                             {DataType::u32, "U32", 4},
                                             {DataType::u16, "U16", 2},
                                             {DataType::u8, "U8", 1},
                                             {DataType::boolean, "BOOL", 1}}};

template <typename Convert>
void widen_each(std::span<const std::byte> source, std::span<float> target, Convert convert) {
  for (std::size_t i = 0; i < target.size(); ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, source.data() + i * sizeof bits, sizeof bits);
    target[i] = convert(bits);
  }
}

template <typename Convert>
void narrow_each(std::span<const float> source, std::span<std::byte> target, Convert convert) {
  for (std::size_t i = 0; i < source.size(); ++i) {
    const std::uint16_t bits = convert(source[i]);
    std::memcpy(target.data() + i * sizeof bits, &bits, sizeof bits);
  }
}

}  // namespace

std::string_view dtype_name(DataType type) {
  return kTypes[static_cast<std::size_t>(type)].name;
}

std::optional<DataType> dtype_of(std::string_view name) {
  for (const TypeRow& row : kTypes) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

std::int64_t bytes_per_number(DataType type) {
  return kTypes[static_cast<std::size_t>(type)].bytes;
}

float f32_from_f16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1F;
  const std::uint32_t fraction = bits & 0x3FF;
  // Subnormal: the fraction counts units of 2^-24. No f32 subnormal occurs on the way, so flushing modes do no harm.
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  const std::uint32_t widened = exponent == 0x1F ? 0xFF : exponent + (127 - 15);
  return std::bit_cast<float>(sign | (widened << 23) | (fraction << 13));
}

float f32_from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t f16_from_f32(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  const std::uint32_t magnitude = bits & 0x7FFFFFFF;
  std::uint32_t result;
  if (magnitude > 0x7F800000) {
    result = 0x7E00 | ((magnitude >> 13) & 0x3FF);  // a quiet NaN
  } else if (magnitude < 0x38800000) {
    // Below 2^-14. The sum's last bit stands for 2^-24, the unit of f16's subnormals, so the addition rounds.
    const float rounded = std::bit_cast<float>(magnitude) + 0.5F;
    result = std::bit_cast<std::uint32_t>(rounded) - std::bit_cast<std::uint32_t>(0.5F);
  } else if (magnitude >= 0x477FF000) {
    result = 0x7C00;  // 65520 and above rounds to infinity
  } else {
    const std::uint32_t odd = (magnitude >> 13) & 1;
    result = (magnitude - ((127U - 15U) << 23) + 0xFFF + odd) >> 13;
  }
  return static_cast<std::uint16_t>(sign | result);
}

std::uint16_t bf16_from_f32(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<std::uint16_t>((bits >> 16) | 0x40);  // a quiet NaN
  const std::uint32_t odd = (bits >> 16) & 1;
  return static_cast<std::uint16_t>((bits + 0x7FFF + odd) >> 16);
}

void widen(DataType type, std::span<const std::byte> source, std::span<float> target) {
  BRAID_CHECK(source.size() == target.size() * static_cast<std::size_t>(bytes_per_number(type)),
              "{} bytes for {} numbers of {}", source.size(), target.size(), dtype_name(type));
  switch (type) {
    case DataType::f32:
      std::memcpy(target.data(), source.data(), source.size());
      return;
    case DataType::f16:
      widen_each(source, target, f32_from_f16);
      return;
    case DataType::bf16:
      widen_each(source, target, f32_from_bf16);
      return;
    default:
      BRAID_CHECK(false, "{} does not widen to F32", dtype_name(type));
  }
}

void narrow(DataType type, std::span<const float> source, std::span<std::byte> target) {
  BRAID_CHECK(target.size() == source.size() * static_cast<std::size_t>(bytes_per_number(type)),
              "{} bytes for {} numbers of {}", target.size(), source.size(), dtype_name(type));
  switch (type) {
    case DataType::f32:
      std::memcpy(target.data(), source.data(), target.size());
      return;
    case DataType::f16:
      narrow_each(source, target, f16_from_f32);
      return;
    case DataType::bf16:
      narrow_each(source, target, bf16_from_f32);
      return;
    default:
      BRAID_CHECK(false, "F32 does not narrow to {}", dtype_name(type));
  }
}

}  // namespace braid::exec

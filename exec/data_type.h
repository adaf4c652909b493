#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace braid::exec {

/// What a stored number is; a file's dtype. `unknown` stands for any that this list has not; its size and name are not
/// known.
enum class DataType { f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, boolean, unknown };

/// As safetensors writes it: "F32", "BF16", ...
std::string_view dtype_name(DataType type);
std::optional<DataType> dtype_of(std::string_view name);
std::int64_t bytes_per_number(DataType type);

/// f16 is IEEE binary16, bf16 the upper half of an f32. Widening is exact; narrowing rounds to nearest, ties to even.
float f32_from_f16(std::uint16_t bits);
float f32_from_bf16(std::uint16_t bits);
std::uint16_t f16_from_f32(float number);
std::uint16_t bf16_from_f32(float number);

/// Numbers of a file as f32: `source` holds as many numbers of f32, f16 or bf16 as `target`. They may not overlap.
void widen(DataType type, std::span<const std::byte> source, std::span<float> target);
/// The reverse.
void narrow(DataType type, std::span<const float> source, std::span<std::byte> target);

}  // namespace braid::exec

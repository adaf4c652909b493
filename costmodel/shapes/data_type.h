#pragma once

#include <cstdint>
#include <string_view>

#include "base/units.h"

namespace braid::costmodel {

/// What numbers are stored and multiplied as.
enum class DataType { f32, bf16, f16, int8, nf4 };

constexpr Bytes bytes_of(DataType type) {
  switch (type) {
    case DataType::f32:
      return 4;
    case DataType::bf16:
    case DataType::f16:
      return 2;
    case DataType::int8:
    case DataType::nf4:  // two numbers
      break;
  }
  return 1;
}

/// What so many weights take: NF4 two a byte, and a scale in f32 for every 64.
constexpr Bytes weight_bytes(DataType type, std::int64_t numbers) {
  constexpr std::int64_t kBlock = 64;
  return type == DataType::nf4 ? numbers / 2 + numbers / kBlock * bytes_of(DataType::f32) : numbers * bytes_of(type);
}

/// What activations are on a GPU beside weights of this type: int8 and NF4 weights are multiplied in 16 bits.
constexpr DataType activation_type(DataType weights) {
  return weights == DataType::int8 || weights == DataType::nf4 ? DataType::bf16 : weights;
}

std::string_view name(DataType type);
/// Throws Error that lists what is known.
DataType data_type_of(std::string_view name);

}  // namespace braid::costmodel

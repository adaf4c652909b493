#pragma once

#include <cstdint>
#include <string_view>

#include "base/units.h"

namespace braid::costmodel {

/// What numbers are stored and multiplied as.
enum class DataType { f32, bf16, f16, int8 };

constexpr Bytes bytes_of(DataType type) {
  switch (type) {
    case DataType::f32:
      return 4;
    case DataType::bf16:
    case DataType::f16:
      return 2;
    case DataType::int8:
      break;
  }
  return 1;
}

/// What activations are beside weights of this type: int8 weights are multiplied in 16 bits.
constexpr DataType activation_type(DataType weights) {
  return weights == DataType::int8 ? DataType::bf16 : weights;
}

std::string_view name(DataType type);
/// Throws Error that lists what is known.
DataType data_type_of(std::string_view name);

}  // namespace braid::costmodel

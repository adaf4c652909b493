#include "costmodel/shapes/data_type.h"

#include <array>

#include "base/error.h"

namespace braid::costmodel {
namespace {

constexpr std::array<std::string_view, 5> kTypeNames = {"f32", "bf16", "f16", "int8", "nf4"};

}  // namespace

std::string_view name(DataType type) {
  return kTypeNames[static_cast<std::size_t>(type)];
}

DataType data_type_of(std::string_view name) {
  for (std::size_t i = 0; i < kTypeNames.size(); ++i) {
    if (kTypeNames[i] == name) return static_cast<DataType>(i);
  }
  throw error("unknown data type '{}'; known: {}", name, fmt::join(kTypeNames, ", "));
}

}  // namespace braid::costmodel

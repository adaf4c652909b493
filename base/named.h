#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace braid {

/// The value of an enumeration that has that name, which name(value) gives. Nothing for another word.
template <typename Enum, std::size_t N>
std::optional<Enum> value_named(std::string_view word, const Enum (&values)[N]) {
  for (const Enum value : values) {
    if (name(value) == word) return value;
  }
  return std::nullopt;
}

/// For messages: the names with commas between.
template <typename Enum, std::size_t N>
std::string names_of(const Enum (&values)[N]) {
  std::string names;
  for (const Enum value : values) {
    if (!names.empty()) names += ", ";
    names += name(value);
  }
  return names;
}

}  // namespace braid

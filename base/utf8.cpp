#include "base/utf8.h"

#include <algorithm>
#include <cstdint>

namespace braid {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

/// Bytes of the character that begins the text, which is not empty; 0 where none does.
std::size_t length_of_character(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  if (!std::all_of(text.begin() + 1, text.begin() + static_cast<std::ptrdiff_t>(length), continues)) return 0;
  const auto second = static_cast<unsigned char>(text[1]);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate = first == 0xED && second > 0x9F;
  const bool too_large = first == 0xF4 && second > 0x8F;
  return overlong || surrogate || too_large ? 0 : length;
}

}  // namespace

std::size_t find_invalid_utf8(std::string_view text, std::size_t from) {
  while (from < text.size()) {
    const std::size_t length = length_of_character(text.substr(from));
    if (length == 0) return from;
    from += length;
  }
  return std::string_view::npos;
}

std::string valid_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bad = std::min(find_invalid_utf8(text, at), text.size());
    result += text.substr(at, bad - at);
    if (bad < text.size()) result += kReplacement;
    at = bad + 1;
  }
  return result;
}

std::string message_line(std::string_view text) {
  std::string line = valid_utf8(text);
  for (char& letter : line) {
    if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F) letter = ' ';
  }
  return line;
}

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && continues(text[most])) --most;
  return std::string(text.substr(0, most)) + "...";
}

}  // namespace braid

#pragma once

#include <string>
#include <string_view>

/// UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing past U+10FFFF.
namespace braid {

/// May begin a file, and is no part of its text.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// Where the first byte at or behind `from` stands that is no UTF-8; std::string_view::npos where there is none. `from`
/// must not lie within a character.
std::size_t find_invalid_utf8(std::string_view text, std::size_t from = 0);

/// The text with U+FFFD in place of every byte that is no UTF-8.
std::string valid_utf8(std::string_view text);

/// The same on one line: a blank stands for every control character.
std::string message_line(std::string_view text);

/// The beginning of a text of more than `most` bytes, and "..." behind it; else the text. Cuts between characters.
std::string shortened(std::string_view text, std::size_t most);

}  // namespace braid

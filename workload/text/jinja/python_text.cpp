#include "workload/text/jinja/python_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace braid::workload::jinja {
namespace {

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

std::size_t next_code_point(std::string_view text, std::size_t at) {
  ++at;
  while (at < text.size() && !begins_character(text[at])) ++at;
  return at;
}

std::size_t code_point_before(std::string_view text, std::size_t at) {
  --at;
  while (at > 0 && !begins_character(text[at])) --at;
  return at;
}

void check_ascii(std::string_view text, std::string_view what) {
  if (std::any_of(text.begin(), text.end(), [](char byte) { return static_cast<unsigned char>(byte) >= 0x80; }))
    throw error("{} of text that is not plain ASCII is not built in", what);
}

bool is_upper(char letter) {
  return letter >= 'A' && letter <= 'Z';
}
bool is_lower(char letter) {
  return letter >= 'a' && letter <= 'z';
}
char to_upper(char letter) {
  return is_lower(letter) ? static_cast<char>(letter - 'a' + 'A') : letter;
}
char to_lower(char letter) {
  return is_upper(letter) ? static_cast<char>(letter - 'A' + 'a') : letter;
}

std::vector<std::string> split_at_space(std::string_view text, std::int64_t most) {
  std::vector<std::string> parts;
  text = strip(text, Ends::left);
  while (!text.empty()) {
    if (most >= 0 && static_cast<std::int64_t>(parts.size()) == most) {
      parts.emplace_back(text);
      break;
    }
    std::size_t end = 0;
    while (end < text.size() && !is_space(code_point_at(text, end))) end = next_code_point(text, end);
    parts.emplace_back(text.substr(0, end));
    text = strip(text.substr(end), Ends::left);
  }
  return parts;
}

std::vector<std::string> split_at_space_from_right(std::string_view text, std::int64_t most) {
  std::vector<std::string> parts;
  text = strip(text, Ends::right);
  while (!text.empty()) {
    if (most >= 0 && static_cast<std::int64_t>(parts.size()) == most) {
      parts.emplace_back(text);
      break;
    }
    std::size_t begin = text.size();
    while (begin > 0 && !is_space(code_point_at(text, code_point_before(text, begin))))
      begin = code_point_before(text, begin);
    parts.emplace_back(text.substr(begin));
    text = strip(text.substr(0, begin), Ends::right);
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

constexpr std::string_view kHexDigits = "0123456789abcdef";

std::string hexadecimal(char32_t code, int digits) {
  std::string text;
  for (int digit = digits - 1; digit >= 0; --digit) text += kHexDigits[(code >> (4 * digit)) & 0xF];
  return text;
}

}  // namespace

std::vector<std::size_t> code_points(std::string_view text) {
  std::vector<std::size_t> begins;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (begins_character(text[at])) begins.push_back(at);
  }
  begins.push_back(text.size());
  return begins;
}

std::int64_t length_of(std::string_view text) {
  return std::count_if(text.begin(), text.end(), begins_character);
}

char32_t code_point_at(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return first;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  char32_t code = first & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) code = code << 6U | (static_cast<unsigned char>(text[at + i]) & 0x3FU);
  return code;
}

void append_code_point(std::string& text, char32_t code) {
  const auto byte = [&](char32_t bits) { text += static_cast<char>(bits); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xC0 | code >> 6U);
  } else {
    if (code < 0x10000) {
      byte(0xE0 | code >> 12U);
    } else {
      byte(0xF0 | code >> 18U);
      byte(0x80 | (code >> 12U & 0x3F));
    }
    byte(0x80 | (code >> 6U & 0x3F));
  }
  byte(0x80 | (code & 0x3F));
}

bool is_space(char32_t code) {
  return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20) || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
         code == 0x205F || code == 0x3000;
}

std::string_view strip(std::string_view text, Ends ends, std::optional<std::string_view> set) {
  const auto goes = [&](std::size_t begin, std::size_t end) {
    if (!set) return is_space(code_point_at(text, begin));
    return set->find(text.substr(begin, end - begin)) != std::string_view::npos;
  };
  std::size_t first = 0, last = text.size();
  while (ends != Ends::right && first < last && goes(first, next_code_point(text, first)))
    first = next_code_point(text, first);
  while (ends != Ends::left && first < last && goes(code_point_before(text, last), last))
    last = code_point_before(text, last);
  return text.substr(first, last - first);
}

std::vector<std::string> split(std::string_view text, std::optional<std::string_view> separator, std::int64_t most,
                               bool from_right) {
  if (!separator) return from_right ? split_at_space_from_right(text, most) : split_at_space(text, most);
  if (separator->empty()) throw error("a text is split at an empty separator");
  std::vector<std::string> parts;
  const auto may_split = [&] { return most < 0 || static_cast<std::int64_t>(parts.size()) < most; };
  if (from_right) {
    for (std::size_t found = 0; may_split() && (found = text.rfind(*separator)) != std::string_view::npos;) {
      parts.emplace_back(text.substr(found + separator->size()));
      text = text.substr(0, found);
    }
    parts.emplace_back(text);
    std::reverse(parts.begin(), parts.end());
    return parts;
  }
  for (std::size_t found = 0; may_split() && (found = text.find(*separator)) != std::string_view::npos;) {
    parts.emplace_back(text.substr(0, found));
    text = text.substr(found + separator->size());
  }
  parts.emplace_back(text);
  return parts;
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t code = code_point_at(text, at);
    std::size_t next = next_code_point(text, at);
    if ((code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 || code == 0x2028 ||
        code == 0x2029) {
      lines.emplace_back(text.substr(begin, at - begin));
      if (code == '\r' && next < text.size() && text[next] == '\n') ++next;
      begin = next;
    }
    at = next;
  }
  if (begin < text.size()) lines.emplace_back(text.substr(begin));
  return lines;
}

std::string replace(std::string_view text, std::string_view from, std::string_view to, std::int64_t most) {
  std::string result;
  if (from.empty()) {
    for (std::size_t at = 0; most != 0; at = next_code_point(text, at)) {
      result += to;
      --most;
      if (at == text.size()) return result;
      const std::size_t next = next_code_point(text, at);
      result += text.substr(at, next - at);
      if (most == 0) return result += text.substr(next);
    }
    return std::string(text);
  }
  for (; most != 0; --most) {
    const std::size_t found = text.find(from);
    if (found == std::string_view::npos) break;
    result += text.substr(0, found);
    result += to;
    text = text.substr(found + from.size());
  }
  return result += text;
}

std::size_t count_of_parts(std::string_view text, std::string_view part) {
  if (part.empty()) return static_cast<std::size_t>(length_of(text)) + 1;
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

std::string upper(std::string_view text) {
  check_ascii(text, "the upper case");
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), to_upper);
  return result;
}

std::string lower(std::string_view text) {
  check_ascii(text, "the lower case");
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), to_lower);
  return result;
}

std::string capitalize(std::string_view text) {
  std::string result = lower(text);
  if (!result.empty()) result[0] = to_upper(result[0]);
  return result;
}

std::string title(std::string_view text) {
  std::string result = lower(text);
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (i == 0 || !is_lower(to_lower(result[i - 1]))) result[i] = to_upper(result[i]);
  }
  return result;
}

std::string python_quoted(std::string_view text) {
  check_ascii(text, "Python's notation");
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char mark = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string result(1, mark);
  for (const char letter : text) {
    if (letter == mark || letter == '\\') {
      result += '\\';
      result += letter;
    } else if (letter == '\n') {
      result += "\\n";
    } else if (letter == '\r') {
      result += "\\r";
    } else if (letter == '\t') {
      result += "\\t";
    } else if (letter < 0x20 || letter == 0x7F) {
      result += "\\x" + hexadecimal(static_cast<unsigned char>(letter), 2);
    } else {
      result += letter;
    }
  }
  return result += mark;
}

std::string json_quoted(std::string_view text, bool ascii) {
  constexpr std::string_view kSpelled = "\"\\\n\r\t\b\f", kLetters = "\"\\nrtbf";
  std::string result = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const char32_t code = code_point_at(text, at);
    const std::size_t next = next_code_point(text, at);
    const std::size_t short_form = code < 0x80 ? kSpelled.find(static_cast<char>(code)) : std::string_view::npos;
    if (short_form != std::string_view::npos) {
      result += '\\';
      result += kLetters[short_form];
    } else if (code < 0x20 || (ascii && code >= 0x7F && code < 0x10000)) {
      result += "\\u" + hexadecimal(code, 4);
    } else if (ascii && code >= 0x10000) {
      result += "\\u" + hexadecimal(0xD800 + ((code - 0x10000) >> 10U), 4);
      result += "\\u" + hexadecimal(0xDC00 + ((code - 0x10000) & 0x3FF), 4);
    } else {
      result += text.substr(at, next - at);
    }
    at = next;
  }
  return result += '"';
}

std::string number_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  constexpr int kLeastPlain = -4, kLeastScientific = 16;  // exponents
  std::array<char, 64> buffer{};
  const auto scientific =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, std::chars_format::scientific);
  const std::string_view shortest(buffer.data(), static_cast<std::size_t>(scientific.ptr - buffer.data()));
  int exponent = 0;
  const std::size_t mark = shortest.find('e');
  const std::size_t digits = mark + (shortest[mark + 1] == '+' ? 2 : 1);
  std::from_chars(shortest.data() + digits, shortest.data() + shortest.size(), exponent);
  if (exponent < kLeastPlain || exponent >= kLeastScientific) return std::string(shortest);
  const auto plain = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, std::chars_format::fixed);
  std::string text(buffer.data(), static_cast<std::size_t>(plain.ptr - buffer.data()));
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

}  // namespace braid::workload::jinja

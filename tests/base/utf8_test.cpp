#include "base/utf8.h"

#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "base/error.h"

namespace braid {
namespace {

/// A code point's UTF-8, by the table of RFC 3629.
std::string encoded(std::uint32_t point) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((point >> shift) & 0x3F)); };
  if (point < 0x80) return {static_cast<char>(point)};
  if (point < 0x800) return {static_cast<char>(0xC0 | (point >> 6)), tail(0)};
  if (point < 0x10000) return {static_cast<char>(0xE0 | (point >> 12)), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | (point >> 18)), tail(12), tail(6), tail(0)};
}

TEST(Utf8, EveryCodePointIsValidButSurrogates) {
  for (std::uint32_t point = 0; point < 0x110000; ++point) {
    const bool surrogate = point >= 0xD800 && point < 0xE000;
    ASSERT_EQ(find_invalid_utf8(encoded(point)) == std::string_view::npos, !surrogate) << point;
  }
  EXPECT_EQ(find_invalid_utf8(encoded(0x110000)), 0U);
}

TEST(Utf8, OverlongFormsStrayBytesAndCutCharactersAreInvalid) {
  for (const char* bad : {"\xC0\xAF", "\xE0\x80\xAF", "\xF0\x80\x80\xAF", "\x80", "\xC3", "\xE2\x82",
                          "\xF5\x80\x80\x80", "\xFF", "\xC3("}) {
    EXPECT_EQ(find_invalid_utf8(std::string("ok") + bad), 2U);
  }
}

RC_GTEST_PROP(Utf8, WhatIsValidStaysAndWhatIsNotBecomesSo, (const std::vector<std::uint8_t>& bytes)) {
  const std::string text(bytes.begin(), bytes.end());
  const std::string valid = valid_utf8(text);
  RC_ASSERT(find_invalid_utf8(valid) == std::string_view::npos);
  RC_ASSERT((valid == text) == (find_invalid_utf8(text) == std::string_view::npos));
  RC_ASSERT(valid_utf8(valid) == valid);
}

RC_GTEST_PROP(Error, MessagesAreOneLineOfUtf8WhateverTheyQuote, (const std::vector<std::uint8_t>& bytes)) {
  const std::string text(bytes.begin(), bytes.end());
  for (const std::string& message :
       {std::string(Error(text).what()), std::string(Failure(text).what()), std::string(error("{}", text).what()),
        std::string(error_at("file", 1, text, text).what())}) {
    RC_ASSERT(find_invalid_utf8(message) == std::string_view::npos);
    RC_ASSERT(std::none_of(message.begin(), message.end(), [](char c) { return c >= 0 && (c < 0x20 || c == 0x7F); }));
  }
}

TEST(Utf8, ShortenedTextIsCutBetweenCharacters) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abcd", 3), "abc...");
  EXPECT_EQ(shortened("ab\u00e9d", 3), "ab...");
}

}  // namespace
}  // namespace braid

#include "workload/text/pattern.h"

#include <gtest/gtest.h>

#include "support.h"

namespace braid::workload {
namespace {

std::vector<std::string> words(const std::string& expression, std::string_view text) {
  std::vector<std::string> found;
  for (const ByteRange& range : Pattern(expression).matches(text))
    found.emplace_back(text.substr(range.begin, range.end - range.begin));
  return found;
}

TEST(Pattern, KnowsUnicodesClassesAndCases) {
  EXPECT_EQ(words(R"(\p{L}+|\p{N})", "aé1²漢"), (std::vector<std::string>{"aé", "1", "²", "漢"}));
  EXPECT_EQ(words(R"(\s+)", "a\xC2\x85\xE3\x80\x80z"), (std::vector<std::string>{"\xC2\x85\xE3\x80\x80"}));
  EXPECT_EQ(words("(?i:'s)", "'S's'ſ"), (std::vector<std::string>{"'S", "'s", "'ſ"}));
}

TEST(Pattern, LeavesMatchesOfNothingOut) {
  EXPECT_EQ(words("a*", "baéa"), (std::vector<std::string>{"a", "a"}));
}

TEST(Pattern, WhatTwoEnginesTakeDifferentlyIsRefusedByName) {
  for (const char* expression : {"^a", "a$", "[a[b]]", "[a&&b]", "[]a]", "a{,3}", "a{2}+", R"(\h)", R"(\G)", R"(\1)",
                                 R"(\pL)", "(?x)a", "(?<n>a)", "[a", R"([\W])", "{", R"(\x)", R"(\u12)", "\\"}) {
    const std::string message = error_of([&] { Pattern{expression}; });
    EXPECT_TRUE(contains(message, expression)) << message;
    EXPECT_TRUE(contains(message, "is not built in")) << message;
  }
  EXPECT_TRUE(contains(error_of([] { Pattern("(a"); }), "is no regular expression"));
  EXPECT_TRUE(contains(error_of([] { Pattern("(?:a").matches("a"); }), "is no regular expression"));
}

}  // namespace
}  // namespace braid::workload

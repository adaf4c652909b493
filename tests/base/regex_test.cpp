#include "base/regex.h"

#include <gtest/gtest.h>

#include "support.h"

namespace braid {
namespace {

TEST(Regex, AWholeTextMatchesOrDoesNot) {
  const Regex either("a|ab");
  EXPECT_TRUE(either.matches("ab"));
  EXPECT_FALSE(either.matches("abc"));
}

TEST(Regex, FindsTheFirstMatchFromAPlaceOnAndLooksBehindIt) {
  const Regex behind("(?<=a)b");
  const auto found = behind.find("ab ab", 1);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->begin, 1u);
  EXPECT_EQ(found->end, 2u);
  EXPECT_EQ(behind.find("ab ab", 2)->begin, 4u);
  EXPECT_FALSE(behind.find("ab ab", 5));
}

TEST(Regex, CharactersAreBytesOrUnicodes) {
  EXPECT_EQ(Regex(".").find("é")->end, 1u);
  const Regex letter("\\p{L}", Regex::Characters::unicode);
  EXPECT_EQ(letter.find("1é")->end, 3u);
  EXPECT_TRUE(contains(error_of([&] { letter.find("\xFF"); }), "cannot be searched"));
}

TEST(Regex, ABrokenExpressionIsNamedWithItsPlace) {
  EXPECT_EQ(error_of([] { Regex("a(b"); }),
            "'a(b' is no regular expression: missing closing parenthesis at character 4");
  EXPECT_THROW(Regex("a(b"), BrokenRegex);
}

TEST(Regex, MatchingThatWouldTakeForeverIsAnError) {
  const Regex expression("(a+)+[bc]");
  EXPECT_THROW(expression.matches(std::string(60, 'a') + "d"), Error);
}

}  // namespace
}  // namespace braid

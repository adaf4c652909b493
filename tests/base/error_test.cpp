#include "base/error.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(Error, MessagesAreFormatted) {
  EXPECT_STREQ(error("{}: {} is wrong; give {}", "f", 3, 4).what(), "f: 3 is wrong; give 4");
  EXPECT_STREQ(error_at("f.yaml", 12, "bad", "good").what(), "f.yaml:12: bad; good");
}

TEST(Error, MessagesAreOneLineOfValidUtf8) {
  const std::string bad = "\xEF\xBF\xBD";
  for (const auto& [text, shown] : std::vector<std::pair<std::string, std::string>>{
           {"größer ≤ 8 \xF0\x9F\x98\x80", "größer ≤ 8 \xF0\x9F\x98\x80"},
           {"a\nb\tc\x7F", "a b c "},
           {"\xC3", bad},                                   // cut short
           {"\xC3(", bad + "("},                            // no continuation
           {"\xC0\xAF", bad + bad},                         // overlong
           {"\xED\xA0\x80", bad + bad + bad},               // a surrogate
           {"\xF4\x90\x80\x80", bad + bad + bad + bad}}) {  // beyond Unicode
    EXPECT_EQ(message_line(text), shown);
    EXPECT_EQ(Error(text).what(), shown);
    EXPECT_EQ(Failure(text).what(), shown);
  }
}

TEST(Error, AFailedCheckSaysWhereAndWhat) {
  const int stages = 0;
  BRAID_CHECK(stages == 0, "never formatted");
  try {
    BRAID_CHECK(stages > 0, "a plan of {} stages", stages);
    FAIL() << "no exception";
  } catch (const InternalError& failure) {
    const std::string message = failure.what();
    EXPECT_NE(message.find("error_test.cpp:"), std::string::npos) << message;
    EXPECT_NE(message.find("a plan of 0 stages (stages > 0)"), std::string::npos) << message;
  }
}

TEST(Error, KindsAreToldApart) {
  EXPECT_FALSE((std::is_base_of_v<Error, Failure>));
  EXPECT_FALSE((std::is_base_of_v<Failure, Error>));
  EXPECT_FALSE((std::is_base_of_v<Error, InternalError>));
}

}  // namespace
}  // namespace braid

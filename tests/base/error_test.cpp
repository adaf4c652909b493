#include "base/error.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(Error, MessagesAreFormatted) {
  EXPECT_STREQ(error("{}: {} is wrong; give {}", "f", 3, 4).what(), "f: 3 is wrong; give 4");
  EXPECT_STREQ(error_at("f.yaml", 12, "bad", "good").what(), "f.yaml:12: bad; good");
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

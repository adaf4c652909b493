#include "base/date.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "base/error.h"

namespace braid {
namespace {

/// Today is found once a process, so that each of these is a process of its own.
TEST(DateDeathTest, IsThatOfTheEnvironmentInUtc) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("SOURCE_DATE_EPOCH", "1732752000", 1);
        std::exit(date_text("%d %b %Y") == "28 Nov 2024" && date_text("").empty() && date_text("%n") == "\n" ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(DateDeathTest, WhatIsNoNumberIsRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("SOURCE_DATE_EPOCH", "today", 1);
        try {
          date_text("%d");
        } catch (const Error&) {
          std::exit(3);
        }
      },
      testing::ExitedWithCode(3), "");
}

TEST(DateDeathTest, ProcessesStartedLaterHaveTheSame) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        unsetenv("SOURCE_DATE_EPOCH");
        const std::string day = date_text("%Y-%m-%d %H:%M:%S");
        pass_date_on();
        const std::string shown = "test \"$(date -u -d @$SOURCE_DATE_EPOCH '+%Y-%m-%d %H:%M:%S')\" = \"" + day + "\"";
        std::exit(std::system(shown.c_str()) == 0 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Date, AFormThatGivesTooMuchIsRefused) {
  std::string form;
  for (int i = 0; i < 1000; ++i) form += "%A";
  EXPECT_THROW(date_text(form), Error);
}

}  // namespace
}  // namespace braid

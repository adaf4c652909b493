#include "base/units.h"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace braid {
namespace {

TEST(Units, NanosecondsRoundToTheNearest) {
  EXPECT_EQ(nanoseconds(1.5), 1'500'000'000);
  EXPECT_EQ(nanoseconds(1.4e-9), 1);
  EXPECT_EQ(nanoseconds(1.6e-9), 2);
  EXPECT_EQ(nanoseconds(seconds(123456789)), 123456789);
}

TEST(Units, BytesAreToldInTheUnitWithTheFiguresThatMatter) {
  for (const auto& [bytes, said] : {std::pair<Bytes, const char*>{0, "0 bytes"},
                                    {1, "1 bytes"},
                                    {999, "999 bytes"},
                                    {12345, "12.3 kB"},
                                    {100'000, "100.0 kB"},
                                    {999'960, "1.0 MB"},
                                    {12'345'678, "12.3 MB"},
                                    {999'940'000, "999.9 MB"},
                                    {999'960'000, "1.00 GB"},
                                    {24'000'000'000, "24.00 GB"},
                                    {-2'500'000, "-2.5 MB"}})
    EXPECT_EQ(describe_bytes(bytes), said);
}

/// The two products round by three parts in 2^53 at most, which is less than half a nanosecond of two weeks.
RC_GTEST_PROP(Units, NanosecondsSurviveSecondsUpToTwoWeeks, (bool negative)) {
  const auto most = static_cast<Nanoseconds>(14 * kDay * 1e9);
  const auto time = *rc::gen::inRange<Nanoseconds>(0, most) * (negative ? -1 : 1);
  RC_ASSERT(nanoseconds(seconds(time)) == time);
}

RC_GTEST_PROP(Units, SecondsAreRoundedToTheNearestNanosecond, ()) {
  const double time = static_cast<double>(*rc::gen::inRange<std::int64_t>(-1'000'000'000, 1'000'000'000)) / 7e8;
  RC_ASSERT(std::abs(seconds(nanoseconds(time)) - time) <= 0.5000001e-9);
}

}  // namespace
}  // namespace braid

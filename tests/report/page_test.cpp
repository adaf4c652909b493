#include "report/page.h"

#include <gtest/gtest.h>

namespace braid::report {
namespace {

TEST(Markup, TextCannotBecomeMarkup) {
  EXPECT_EQ(escaped("<b a=\"1\">&amp;"), "&lt;b a=&quot;1&quot;&gt;&amp;amp;");
  const std::string page = to_html("<script>", {{"<script>", "<script>", {"<script>"}, {{"<script>"}, {{"<script>"}}}}},
                                   {"<script>", {"<script>"}, {"<script>"}});
  EXPECT_EQ(page.find("<script"), std::string::npos);
}

TEST(Markup, NumbersAreToldAsTheyAreRead) {
  EXPECT_EQ(number_text(0), "0");
  EXPECT_EQ(number_text(12345.6), "12,346");
  EXPECT_EQ(number_text(-1234567), "-1,234,567");
  EXPECT_EQ(number_text(1.5), "1.5");
  EXPECT_EQ(number_text(0.012345), "0.01235");
  EXPECT_EQ(number_text(999.96), "1000");
  EXPECT_EQ(number_text(1e-7), "1e-07");
  EXPECT_EQ(number_text(1.0 / 0.0), "–");
  EXPECT_EQ(unit_of_seconds(0.02).name, "ms");
  EXPECT_EQ(unit_of_seconds(86400).of(7200), 2);
  EXPECT_EQ(unit_of_bytes(3e9).name, "GB");
}

TEST(Page, NeedsNothingElse) {
  const std::string page =
      to_html("title", {{"one", "a.json", {"words"}, {}, {{"what to see", "<svg></svg>"}}}, {"two", "b"}},
              {"braid report a.json", {"braid 1"}, {}});
  for (const char* outside : {"http", "src=", "url(", "@import", "<script", "<link"})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  EXPECT_NE(page.find("prefers-color-scheme: dark"), std::string::npos);
  EXPECT_NE(page.find("@media print"), std::string::npos);
  EXPECT_NE(page.find("<figcaption>what to see</figcaption>"), std::string::npos);
  EXPECT_NE(page.find("href=\"#s1\""), std::string::npos) << "sections are listed";
  EXPECT_NE(page.find("made by <code>braid report a.json</code>"), std::string::npos);
}

}  // namespace
}  // namespace braid::report

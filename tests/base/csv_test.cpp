#include "base/csv.h"

#include "support.h"

namespace braid {
namespace {

std::vector<std::vector<std::string>> rows_of(const std::string& text) {
  const TestFolder folder;
  CsvReader csv(folder.write("rows.csv", text));
  std::vector<std::vector<std::string>> rows;
  while (csv.next()) rows.emplace_back(csv.fields().begin(), csv.fields().end());
  return rows;
}

using Rows = std::vector<std::vector<std::string>>;

TEST(Csv, SplitsAtCommasAndKeepsEmptyFields) {
  EXPECT_EQ(rows_of("a,b\r\n\n ,c\n,\n"), (Rows{{"a", "b"}, {"", "c"}, {"", ""}}));
}

TEST(Csv, QuotesHoldCommasAndDoubledQuotes) {
  EXPECT_EQ(rows_of("\"a,b\",\"say \"\"hi\"\"\",\"\"\n\"\"\"\""), (Rows{{"a,b", "say \"hi\"", ""}, {"\""}}));
}

TEST(Csv, BlanksAroundFieldsAreNoPartOfThem) {
  EXPECT_EQ(rows_of("a, b ,\tc\n \"x, y\" , z z ,\n"), (Rows{{"a", "b", "c"}, {"x, y", "z z", ""}}));
}

TEST(Csv, TheFirstRowTellsTheSeparator) {
  for (const char* separator : {",", "\t", ";"}) {
    const std::string text = fmt::format("a{0}b c{0}\n{0}\"d,e;f\tg\"{0} 1 \n", separator);
    EXPECT_EQ(rows_of(text), (Rows{{"a", "b c", ""}, {"", "d,e;f\tg", "1"}})) << text;
  }
  EXPECT_EQ(rows_of("\"a,b\";c\n1,5;2\n"), (Rows{{"a,b", "c"}, {"1,5", "2"}}));
  EXPECT_EQ(rows_of("a,b;c\n1;2,3\n"), (Rows{{"a", "b;c"}, {"1;2", "3"}}));
}

TEST(Csv, AnOpenQuoteIsAnErrorWithItsLine) {
  for (const char* text : {"a\n\"b", "a\n\"b\"c", "a\n\"b\"\"", "a\n\""}) {
    EXPECT_TRUE(contains(error_of([&] { rows_of(text); }), "rows.csv:2: ")) << text;
  }
}

TEST(Csv, RowsGoOnBelowAnOpenQuote) {
  const TestFolder folder;
  CsvReader csv(folder.write("rows.csv", "a\n\"b\nc\n"));
  ASSERT_TRUE(csv.next());
  EXPECT_THROW(csv.next(), Error);
  ASSERT_TRUE(csv.next());
  EXPECT_EQ(csv.fields()[0], "c");
  EXPECT_EQ(csv.line(), 3);
  EXPECT_FALSE(csv.next());
}

TEST(Csv, AByteOrderMarkIsNoPartOfTheFirstField) {
  EXPECT_EQ(rows_of("\xEF\xBB\xBF"
                    "a,b\n\xEF\xBB\xBF,c"),
            (Rows{{"a", "b"}, {"\xEF\xBB\xBF", "c"}}));
}

TEST(Csv, TwoColumnsOfOneNameAreAnError) {
  const TestFolder folder;
  CsvReader csv(folder.write("rows.csv", "a,b,c\nnode,gpu,node\n"));
  ASSERT_TRUE(csv.next());
  EXPECT_NO_THROW(csv.check_distinct());
  ASSERT_TRUE(csv.next());
  EXPECT_TRUE(contains(error_of([&] { csv.check_distinct(); }), "rows.csv:2: two columns are named 'node'"));
}

TEST(Csv, NumbersAreWholeFields) {
  const TestFolder folder;
  CsvReader csv(folder.write("rows.csv", "1.5,7,x,inf,3 4"));
  ASSERT_TRUE(csv.next());
  EXPECT_EQ(csv.number(0, "a"), 1.5);
  EXPECT_EQ(csv.integer(1, "b"), 7);
  for (const std::size_t column : {2, 3, 4}) EXPECT_THROW(csv.number(column, "c"), Error) << column;
  EXPECT_THROW(csv.integer(0, "a"), Error);
}

}  // namespace
}  // namespace braid

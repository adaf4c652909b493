#include "base/file_form.h"

#include "support.h"

namespace braid {
namespace {

using namespace std::string_view_literals;

std::string form_of(std::string_view bytes) {
  const auto form = foreign_form(bytes, "f");
  return form ? form->what : "";
}

TEST(FileForm, IsToldByTheFirstBytes) {
  EXPECT_EQ(form_of("\x1F\x8B\x08"sv), "gzip");
  EXPECT_EQ(form_of("\x28\xB5\x2F\xFD\x04"sv), "zstd");
  EXPECT_EQ(form_of("PAR1\x15\x04"sv), "Parquet");
  EXPECT_EQ(form_of("ARROW1\0\0"sv), "Arrow");
  EXPECT_EQ(form_of("\xFF\xFF\xFF\xFF\x10"sv), "Arrow");
  EXPECT_EQ(form_of("\xFF\xFE{\0"sv), "UTF-16");
  EXPECT_EQ(form_of("\xFE\xFF\0{"sv), "UTF-16");
  EXPECT_EQ(form_of("{\0\"\0t\0"sv), "UTF-16");
  EXPECT_EQ(form_of("\0{\0\"\0t"sv), "UTF-16");
  EXPECT_EQ(form_of("\xFF\xFE\0\0{\0\0\0"sv), "UTF-32");
}

TEST(FileForm, TextHasNone) {
  for (const std::string_view text : {""sv, "{"sv, "{}"sv, "{\"text\": \"a\"}"sv, "\xEF\xBB\xBF{}"sv, "caf\xE9"sv,
                                      "PAR"sv, "\0\0\0\0"sv, "a,b\n"sv}) {
    EXPECT_EQ(form_of(text), "");
  }
}

TEST(FileForm, TheCommandNeverWritesOverTheFile) {
  for (const char* name : {"d/rows.jsonl.gz", "d/rows.jsonl", "rows", "rows.parquet"}) {
    for (const std::string_view bytes : {"\x1F\x8B"sv, "PAR1"sv, "\xFF\xFE{\0"sv}) {
      const std::string remedy = foreign_form(bytes, name)->remedy;
      EXPECT_TRUE(contains(remedy, name)) << remedy;
      EXPECT_FALSE(remedy.ends_with("> " + std::string(name))) << remedy;
      EXPECT_FALSE(contains(remedy, fmt::format("to_json('{}'", name))) << remedy;
    }
  }
  EXPECT_EQ(foreign_form("\x1F\x8B"sv, "d/rows.jsonl.gz")->remedy,
            "convert it: gunzip -c d/rows.jsonl.gz > d/rows.jsonl");
}

}  // namespace
}  // namespace braid

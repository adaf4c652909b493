#include "base/source_text.h"

#include <istream>
#include <iterator>

#include "support.h"

namespace braid {
namespace {

/// Lines of several blocks, of any length.
std::string many_lines() {
  std::string text;
  for (std::size_t length = 0; length < 700; ++length) text += std::string(length, 'x') + "\n";
  return text;
}

TEST(SourceText, GivesTheFilesBytesWhetherLookedAtOrNot) {
  const TestFolder folder;
  for (const std::string& text : {std::string(), std::string("\n \n"), std::string("\0\r\n", 3), many_lines(),
                                  std::string(200'000, ' ') + many_lines()}) {
    for (const bool looked : {false, true}) {
      SourceText source(folder.write("text", text));
      if (looked) source.first_character();
      std::istream in(&source);
      EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), text) << text.size() << looked;
    }
  }
}

TEST(SourceText, FindsTheFirstCharacterBehindAnyWhiteSpace) {
  const TestFolder folder;
  for (const std::size_t blanks : {0, 1, 65'535, 65'536, 200'000}) {
    EXPECT_EQ(SourceText(folder.write("text", std::string(blanks, '\n') + "[1]")).first_character(), '[') << blanks;
    EXPECT_EQ(SourceText(folder.write("text", std::string(blanks, '\t'))).first_character(), '\0') << blanks;
  }
}

TEST(SourceText, AByteOrderMarkIsNoPartOfTheText) {
  const TestFolder folder;
  const std::string mark(kByteOrderMark);
  for (const std::string& text : {std::string(), std::string("[1]"), many_lines(), std::string(200'000, ' ') + "x"}) {
    for (const bool looked : {false, true}) {
      SourceText source(folder.write("text", mark + text));
      if (looked) {
        EXPECT_EQ(source.beginning(), std::string_view(text).substr(0, source.beginning().size()));
        source.first_character();
      }
      std::istream in(&source);
      EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), text) << text.size() << looked;
    }
  }
  EXPECT_EQ(SourceText(folder.write("text", " " + mark)).first_character(), mark[0]);
}

TEST(SourceText, TellsTheLineOfTheNextCharacter) {
  const TestFolder folder;
  const std::string text = many_lines();
  for (const bool looked : {false, true}) {
    for (const std::size_t step : {1, 7, 100'000}) {
      SourceText source(folder.write("text", text));
      if (looked) source.first_character();
      int line = 1;
      for (std::size_t i = 0; i < text.size(); ++i) {
        if (i % step == 0) {
          ASSERT_EQ(source.line(), line) << i;
        }
        if (source.sbumpc() == '\n') ++line;
      }
      EXPECT_EQ(source.line(), line);
    }
  }
}

TEST(SourceText, FilesThatCannotBeReadAreErrors) {
  const TestFolder folder;
  expect_error([&] { SourceText(folder / "none"); }, "none: cannot be read");
  expect_error([&] { SourceText(folder.path()); }, "is a folder");
}

}  // namespace
}  // namespace braid

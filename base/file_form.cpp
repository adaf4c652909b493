#include "base/file_form.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

namespace braid {
namespace {

using namespace std::string_view_literals;

/// What a file begins with, and the command that makes text of it: {0} stands for the file, {1} for the text's.
struct Mark {
  std::string_view bytes, what, command;
  bool table = false;  ///< the text is JSON lines
};

constexpr std::string_view kFromArrowStream =
    R"py(python3 -c "import datasets; datasets.Dataset.from_file('{0}').to_json('{1}')")py";
constexpr std::string_view kFromArrow =
    R"py(python3 -c "import pandas; pandas.read_feather('{0}').to_json('{1}', orient='records', lines=True)")py";
constexpr std::string_view kFromParquet =
    R"py(python3 -c "import pandas; pandas.read_parquet('{0}').to_json('{1}', orient='records', lines=True)")py";

constexpr std::array<Mark, 12> kMarks = {{
    {"\x1F\x8B"sv, "gzip", "gunzip -c {0} > {1}"},
    {"\x28\xB5\x2F\xFD"sv, "zstd", "zstd -dc {0} > {1}"},
    {"\xFD"
     "7zXZ"sv,
     "xz", "xz -dc {0} > {1}"},
    {"BZh"sv, "bzip2", "bunzip2 -c {0} > {1}"},
    {"PK\x03\x04"sv, "zip", "unzip -p {0} > {1}"},
    {"PAR1"sv, "Parquet", kFromParquet, true},
    {"ARROW1"sv, "Arrow", kFromArrow, true},
    {"\xFF\xFF\xFF\xFF"sv, "Arrow", kFromArrowStream, true},
    {"\xFF\xFE\0\0"sv, "UTF-32", "iconv -f UTF-32 -t UTF-8 {0} > {1}"},
    {"\0\0\xFE\xFF"sv, "UTF-32", "iconv -f UTF-32 -t UTF-8 {0} > {1}"},
    {"\xFF\xFE"sv, "UTF-16", "iconv -f UTF-16 -t UTF-8 {0} > {1}"},
    {"\xFE\xFF"sv, "UTF-16", "iconv -f UTF-16 -t UTF-8 {0} > {1}"},
}};

/// A name for the text: that of the file without the ending that its form has, never the file's own.
std::string name_of_text(const std::filesystem::path& file, bool table) {
  constexpr std::array<std::string_view, 5> kPacked = {".gz", ".zst", ".xz", ".bz2", ".zip"};
  const std::string ending = file.extension().string();
  std::filesystem::path name = file;
  if (std::find(kPacked.begin(), kPacked.end(), ending) != kPacked.end()) return name.replace_extension().string();
  const std::string wanted = table ? ".jsonl" : ending;
  return name.replace_extension(wanted == ending ? ".text" + ending : wanted).string();
}

FileForm form(std::string_view what, std::string_view command, const std::string& file, bool table = false) {
  return {std::string(what), "convert it: " + fmt::format(fmt::runtime(command), file, name_of_text(file, table))};
}

}  // namespace

std::optional<FileForm> foreign_form(std::string_view first_bytes, const std::string& file) {
  for (const Mark& mark : kMarks) {
    if (first_bytes.starts_with(mark.bytes)) return form(mark.what, mark.command, file, mark.table);
  }
  // UTF-16 without a byte order mark: every other byte of Latin letters is zero.
  const auto zero = [&](std::size_t place) { return first_bytes[place] == '\0'; };
  if (first_bytes.size() < 4 || zero(0) == zero(1) || zero(0) != zero(2) || zero(1) != zero(3)) return std::nullopt;
  return form("UTF-16", fmt::format("iconv -f UTF-16{} -t UTF-8 {{0}} > {{1}}", zero(0) ? "BE" : "LE"), file);
}

FileForm csv_form(const std::string& file) {
  return form("CSV",
              R"py(python3 -c "import pandas; pandas.read_csv('{0}').to_json('{1}', orient='records', lines=True)")py",
              file, true);
}

std::string encoding_remedy(const std::string& file) {
  return fmt::format("if it is Latin-1, convert it: iconv -f LATIN1 -t UTF-8 {} > {}", file, name_of_text(file, false));
}

std::string line_end_remedy(const std::string& file) {
  return fmt::format("convert it: tr '\\r' '\\n' < {} > {}", file, name_of_text(file, false));
}

}  // namespace braid

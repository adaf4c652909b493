#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

/// Comma-separated rows of a file, one at a time (RFC 4180; a quoted field may hold commas and doubled quotes, no line
/// break). Tabs or semicolons separate fields where the first row has no comma. Blanks around a field are no part of
/// it. Blank lines are passed over and counted; a byte order mark that begins the file is no part of it.
class CsvReader {
 public:
  /// Throws Error when the file cannot be read.
  explicit CsvReader(const std::filesystem::path& path);
  /// Of the text that `in` has yet to give; it must outlive the reader. `file` is for messages.
  CsvReader(std::istream& in, std::string file);

  /// The next row; false at the end. Throws Error "FILE:LINE: ..." for a quote that its line does not close; the call
  /// after that goes on with the line below. Throws Failure when reading fails.
  bool next();
  /// For a row that names the columns: throws Error "FILE:LINE: ..." when two of them have one name.
  void check_distinct() const;

  /// Of the row read last; good until the next.
  std::span<const std::string_view> fields() const { return fields_; }
  const std::string& file() const { return file_; }
  int line() const { return line_; }
  /// ',', '\t' or ';', once a row has been read.
  char separator() const { return separator_; }
  std::int64_t blank_lines() const { return blank_lines_; }

  /// A number in the row's column; `what` is its name. Throw Error "FILE:LINE: ..." for anything else.
  double number(std::size_t column, std::string_view what) const;
  std::int64_t integer(std::size_t column, std::string_view what) const;

 private:
  char separator_of_text() const;
  void split();
  std::string_view unquoted(std::size_t& at);

  std::string file_;
  std::ifstream opened_;  // in_, where it is the reader's own
  std::istream& in_;
  std::string text_;
  std::vector<std::string_view> fields_;
  char separator_ = '\0';  // not known yet
  int line_ = 0;
  std::int64_t blank_lines_ = 0;
};

/// As a field of a row: quoted where it must be.
std::string csv_field(std::string_view text);

}  // namespace braid

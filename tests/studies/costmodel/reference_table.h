#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace braid::costmodel::studies {

/// A row of a table of figures that others measured.
struct ReferenceRow {
  std::string file;
  int line = 0;
  std::vector<std::string> fields;

  const std::string& text(std::size_t column) const { return fields[column]; }
  /// Above 0. Throw Error "FILE:LINE: ...".
  double number(std::size_t column) const;
  std::int64_t integer(std::size_t column) const;
};

/// The first line of a comma-separated file, which names its columns.
std::string reference_header(const std::filesystem::path& csv);

/// The rows of a file whose first line is `header`. Throws Error "FILE:LINE: ..." for another header and for a row with
/// another number of fields. Blank lines are skipped.
std::vector<ReferenceRow> read_reference_table(const std::filesystem::path& csv, std::string_view header);

}  // namespace braid::costmodel::studies

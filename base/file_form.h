#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace braid {

/// A form in which files hold text or tables that braid does not read, and how to turn one into plain text.
struct FileForm {
  std::string what;    ///< "gzip", ...
  std::string remedy;  ///< the command that converts this file, for a message
};

/// The form that the first bytes of `file` (a few dozen are enough) show: compressed (gzip, zstd, xz, bzip2, zip),
/// Parquet, Arrow, UTF-16 or UTF-32. Nothing for UTF-8 and whatever else looks like text in an encoding of bytes.
std::optional<FileForm> foreign_form(std::string_view first_bytes, const std::string& file);

/// What to do with comma-separated values where rows of JSON are wanted.
FileForm csv_form(const std::string& file);
/// What to do with text that is not valid UTF-8 and of no form that foreign_form() knows.
std::string encoding_remedy(const std::string& file);
/// What to do with text whose lines end in a carriage return alone.
std::string line_end_remedy(const std::string& file);

}  // namespace braid

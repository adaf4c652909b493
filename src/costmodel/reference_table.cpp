#include "costmodel/reference_table.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "base/error.h"
#include "base/file.h"

namespace braid::costmodel {
namespace {

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream text(line);
  for (std::string field; std::getline(text, field, ',');) fields.push_back(field);
  return fields;
}

void drop_carriage_return(std::string& line) {
  if (line.ends_with('\r')) line.pop_back();
}

template <typename Number>
Number positive(const ReferenceRow& row, std::size_t column) {
  const std::string& text = row.fields[column];
  Number number{};
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  constexpr auto kMost = static_cast<Number>(1'000'000'000'000);
  if (fault != std::errc() || end != text.data() + text.size() || !(number > 0) || number > kMost)
    throw error_at(row.file, row.line, fmt::format("'{}' in column {} is no number above 0", text, column + 1),
                   "give one of 1e12 at most, or take the row away");
  return number;
}

}  // namespace

double ReferenceRow::number(std::size_t column) const {
  return positive<double>(*this, column);
}

std::int64_t ReferenceRow::integer(std::size_t column) const {
  return positive<std::int64_t>(*this, column);
}

std::string reference_header(const std::filesystem::path& csv) {
  std::istringstream text(read_file(csv));
  std::string line;
  std::getline(text, line);
  drop_carriage_return(line);
  return line;
}

std::vector<ReferenceRow> read_reference_table(const std::filesystem::path& csv, std::string_view header) {
  const auto columns = static_cast<std::size_t>(std::count(header.begin(), header.end(), ',')) + 1;
  std::istringstream text(read_file(csv));
  std::vector<ReferenceRow> rows;
  std::string line;
  for (int number = 1; std::getline(text, line); ++number) {
    drop_carriage_return(line);
    if (number == 1) {
      if (line != header)
        throw error_at(csv.string(), 1, fmt::format("the columns are '{}'", line), fmt::format("give {}", header));
      continue;
    }
    if (line.empty()) continue;
    rows.push_back({csv.string(), number, fields_of(line)});
    if (rows.back().fields.size() != columns)
      throw error_at(csv.string(), number, fmt::format("'{}' is not a row", line), fmt::format("give {}", header));
  }
  if (rows.empty()) throw error_at(csv.string(), 1, "there are no rows below the columns", "give some");
  return rows;
}

}  // namespace braid::costmodel

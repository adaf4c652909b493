#include "studies/costmodel/reference_table.h"

#include <charconv>

#include <fmt/ranges.h>

#include "base/csv.h"
#include "base/error.h"

namespace braid::costmodel::studies {
namespace {

std::string joined(const CsvReader& csv) {
  return fmt::format("{}", fmt::join(csv.fields(), ","));
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
  CsvReader rows(csv);
  rows.next();
  return joined(rows);
}

std::vector<ReferenceRow> read_reference_table(const std::filesystem::path& csv, std::string_view header) {
  CsvReader lines(csv);
  lines.next();
  if (joined(lines) != header)
    throw error_at(csv.string(), 1, fmt::format("the columns are '{}'", joined(lines)), fmt::format("give {}", header));
  const std::size_t columns = lines.fields().size();
  std::vector<ReferenceRow> rows;
  while (lines.next()) {
    if (lines.fields().size() != columns)
      throw error_at(csv.string(), lines.line(), fmt::format("'{}' is not a row", joined(lines)),
                     fmt::format("give {}", header));
    rows.push_back({csv.string(), lines.line(), {lines.fields().begin(), lines.fields().end()}});
  }
  if (rows.empty()) throw error_at(csv.string(), 1, "there are no rows below the columns", "give some");
  return rows;
}

}  // namespace braid::costmodel::studies

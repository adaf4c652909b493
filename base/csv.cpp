#include "base/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/utf8.h"

namespace braid {
namespace {

template <typename Number>
bool parse(std::string_view text, Number& number) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  return fault == std::errc() && end == text.data() + text.size();
}

}  // namespace

CsvReader::CsvReader(const std::filesystem::path& path)
    : file_(path.string()), opened_(open_to_read(path)), in_(opened_) {}

CsvReader::CsvReader(std::istream& in, std::string file) : file_(std::move(file)), in_(in) {}

bool CsvReader::next() {
  while (std::getline(in_, text_)) {
    if (++line_ == 1 && text_.starts_with(kByteOrderMark)) text_.erase(0, kByteOrderMark.size());
    if (text_.ends_with('\r')) text_.pop_back();
    if (text_.find_first_not_of(" \t") == std::string::npos) {
      ++blank_lines_;
      continue;
    }
    if (separator_ == '\0') separator_ = separator_of_text();
    split();
    return true;
  }
  if (in_.bad()) throw Failure(fmt::format("{}: reading failed after line {}; check the disk", file_, line_));
  fields_.clear();
  return false;
}

void CsvReader::check_distinct() const {
  for (auto name = fields_.begin(); name != fields_.end(); ++name) {
    if (std::find(fields_.begin(), name, *name) != name)
      throw error_at(file_, line_, fmt::format("two columns are named '{}'", *name), "leave one of them out");
  }
}

/// A comma where the line has one outside quotes, else a tab, else a semicolon.
char CsvReader::separator_of_text() const {
  bool quoted = false;
  std::string plain;
  for (const char letter : text_) {
    quoted ^= letter == '"';
    if (!quoted) plain += letter;
  }
  for (const char separator : {',', '\t', ';'}) {
    if (plain.find(separator) != std::string::npos) return separator;
  }
  return ',';
}

void CsvReader::split() {
  const std::string_view blanks = separator_ == '\t' ? " " : " \t";
  fields_.clear();
  for (std::size_t at = 0;; ++at) {
    const std::size_t begin = std::min(text_.find_first_not_of(blanks, at), text_.size());
    if (begin < text_.size() && text_[begin] == '"') {
      at = begin;
      fields_.push_back(unquoted(at));
    } else {
      const std::size_t end = std::min(text_.find(separator_, at), text_.size());
      std::string_view field = std::string_view(text_).substr(std::min(begin, end), end - std::min(begin, end));
      field.remove_suffix(field.size() - (field.find_last_not_of(blanks) + 1));
      fields_.push_back(field);
      at = end;
    }
    if (at >= text_.size()) return;
  }
}

/// The quoted field that begins at `at`, its quotes undone in place; `at` moves behind it and the blanks that follow.
std::string_view CsvReader::unquoted(std::size_t& at) {
  const std::size_t begin = at;
  std::size_t end = begin;
  const auto is_quote = [&](std::size_t place) { return place < text_.size() && text_[place] == '"'; };
  for (++at; at < text_.size(); ++at) {
    if (is_quote(at) && !is_quote(++at)) {
      at = std::min(text_.find_first_not_of(' ', at), text_.size());
      if (at < text_.size() && text_[at] != separator_) break;
      return std::string_view(text_).substr(begin, end - begin);
    }
    text_[end++] = text_[at];
  }
  throw error_at(file_, line_, "a quote is not closed before a separator or the line's end", "close it");
}

double CsvReader::number(std::size_t column, std::string_view what) const {
  double value = 0;
  if (!parse(fields_[column], value) || !std::isfinite(value))
    throw error_at(file_, line_, fmt::format("{} '{}' is no number", what, fields_[column]), "give one");
  return value;
}

std::int64_t CsvReader::integer(std::size_t column, std::string_view what) const {
  std::int64_t value = 0;
  if (!parse(fields_[column], value))
    throw error_at(file_, line_, fmt::format("{} '{}' is no whole number", what, fields_[column]), "give one");
  return value;
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char letter : text) quoted += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return quoted + '"';
}

}  // namespace braid

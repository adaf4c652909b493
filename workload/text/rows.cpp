#include "workload/text/rows.h"

#include <algorithm>

#include "base/file.h"
#include "base/file_form.h"
#include "base/utf8.h"

namespace braid::workload {
namespace {

constexpr std::string_view kSpace = " \t\r\n";
constexpr std::size_t kFirstBytes = 64;

/// The text of a file, and how far it has been read.
class RowText {
 public:
  RowText(std::string_view text, const std::string& file, const std::function<void(const Node&)>& take)
      : text_(text), file_(file), take_(take) {}

  void read() {
    skip_space();
    if (at_end()) return;
    if (text_[at_] == '[') return read_list();
    if (line_at_hand() == "{") return read_objects();
    if (text_[at_] != '{') refuse_table();
    read_lines();
  }

 private:
  bool at_end() const { return at_ == text_.size(); }

  void move_to(std::size_t place) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(place), '\n'));
    at_ = place;
  }
  void skip_space() { move_to(std::min(text_.find_first_not_of(kSpace, at_), text_.size())); }

  /// Without the blanks at its end.
  std::string_view line_at_hand() const {
    std::string_view line = text_.substr(at_, std::min(text_.find('\n', at_), text_.size()) - at_);
    line.remove_suffix(line.size() - (line.find_last_not_of(kSpace) + 1));
    return line;
  }

  void refuse_table() const {
    if (line_at_hand().find_first_of(",;\t") == std::string_view::npos) return;
    const FileForm csv = csv_form(file_);
    throw error_at(file_, line_, "no row of JSON; the file looks like " + csv.what, csv.remedy);
  }

  void read_lines() {
    for (; !at_end(); skip_space()) {
      const std::string_view row = line_at_hand();
      if (row.find('\r') != std::string_view::npos)
        throw error_at(file_, line_, "lines end in a carriage return alone", line_end_remedy(file_));
      take_(parse_json(row, file_, line_));
      move_to(at_ + row.size());
    }
  }

  void read_objects() {
    for (; !at_end(); skip_space()) take_value();
  }

  void read_list() {
    move_to(at_ + 1);
    skip_space();
    for (bool more = at_end() || text_[at_] != ']'; more;) {
      take_value();
      skip_space();
      if (at_end() || (text_[at_] != ',' && text_[at_] != ']'))
        throw error_at(file_, line_, "not valid JSON (the list of rows goes on without a comma or an end)",
                       "mend the syntax");
      more = text_[at_] == ',';
      if (more) move_to(at_ + 1);
      skip_space();
    }
    move_to(at_ + 1);
    skip_space();
    if (!at_end()) throw error_at(file_, line_, "text follows the list of rows", "give one list, or a row a line");
  }

  void take_value() {
    const std::size_t end = end_of_value();
    take_(parse_json(text_.substr(at_, end - at_), file_, line_));
    move_to(end);
  }

  /// Behind the value at hand; the text's end where it has none.
  std::size_t end_of_value() const {
    int depth = 0;
    bool quoted = false;
    for (std::size_t place = at_; place < text_.size(); ++place) {
      const char letter = text_[place];
      if (quoted) {
        if (letter == '\\') ++place;
        quoted = letter != '"';
        continue;
      }
      quoted = letter == '"';
      const bool closes = letter == '}' || letter == ']';
      if (depth == 0 && (closes || letter == ',')) return place;
      if (letter == '{' || letter == '[') ++depth;
      if (closes && --depth == 0) return place + 1;
    }
    return text_.size();
  }

  std::string_view text_;
  const std::string& file_;
  const std::function<void(const Node&)>& take_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

void for_each_row(const std::filesystem::path& path, const std::function<void(const Node& row)>& take) {
  const std::string content = read_file(path);
  const std::string file = path.string();
  std::string_view text = content;
  if (const auto form = foreign_form(text.substr(0, kFirstBytes), file))
    throw error_at(file, 1, fmt::format("the file is {}, not rows of JSON", form->what), form->remedy);
  if (const std::size_t bad = find_invalid_utf8(text); bad != std::string_view::npos) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(bad), '\n');
    throw error_at(file, static_cast<int>(line), "not UTF-8", encoding_remedy(file));
  }
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  RowText(text, file, take).read();
}

}  // namespace braid::workload

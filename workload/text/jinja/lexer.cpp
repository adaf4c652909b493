#include "workload/text/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/utf8.h"
#include "workload/text/jinja/python_text.h"

namespace braid::workload::jinja {
namespace {

/// The longer before those that they begin with.
constexpr std::array<std::string_view, 26> kSymbols = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                       "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                       ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}
bool begins_name(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || letter == '_';
}

/// With line feeds alone for line ends, and without one at the very end.
std::string with_line_feeds(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool pair = text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n';
    if (!pair) result += text[at] == '\r' ? '\n' : text[at];
  }
  if (result.ends_with('\n')) result.pop_back();
  return result;
}

class Lexer {
 public:
  Lexer(std::string text, const Source& source) : text_(std::move(text)), source_(source) {}

  std::vector<Token> cut() {
    while (at_ < text_.size()) cut_text();
    add(Token::Kind::end, "");
    return std::move(tokens_);
  }

 private:
  Error fail(const std::string& what) const { return source_.error(line_, what); }

  bool starts(std::string_view word) const { return std::string_view(text_).substr(at_).starts_with(word); }

  void move_to(std::size_t place) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(place), '\n'));
    if (place > at_) line_starts_ = text_[place - 1] == '\n';
    at_ = place;
  }

  void add(Token::Kind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  /// Text up to the next mark, and what the mark opens.
  void cut_text() {
    std::size_t mark = at_;
    while ((mark = text_.find('{', mark)) != std::string::npos && mark + 1 < text_.size() &&
           std::string_view("{%#").find(text_[mark + 1]) == std::string_view::npos)
      ++mark;
    if (mark == std::string::npos || mark + 1 >= text_.size()) {
      add(Token::Kind::text, text_.substr(at_));
      return move_to(text_.size());
    }
    const char kind = text_[mark + 1];
    std::size_t inside = mark + 2;
    const char sign = inside < text_.size() && (text_[inside] == '-' || text_[inside] == '+') ? text_[inside++] : ' ';
    std::string_view text = std::string_view(text_).substr(at_, mark - at_);
    if (sign == '-') {
      text = strip(text, Ends::right);
    } else if (sign != '+' && kind != '{') {
      text = without_indentation(text);
    }
    if (!text.empty()) add(Token::Kind::text, std::string(text));
    move_to(inside);
    if (kind == '#') return skip_comment();
    cut_inside(kind == '{');
  }

  /// Without what is blank behind the last line break, if that is all of the line.
  std::string_view without_indentation(std::string_view text) const {
    const std::size_t line = text.rfind('\n') + 1;  // 0 where there is none
    const bool all_of_line = line > 0 || line_starts_;
    return all_of_line && strip(text.substr(line)).empty() ? text.substr(0, line) : text;
  }

  void skip_comment() {
    const std::size_t end = text_.find("#}", at_);
    if (end == std::string::npos) throw fail("a comment {# has no end #}");
    const char sign = end > at_ ? text_[end - 1] : ' ';
    move_to(end + 2);
    end_mark(sign, true);
  }

  /// What is dropped behind a mark.
  void end_mark(char sign, bool drops_line_break) {
    if (sign == '-') {
      const std::string_view rest = std::string_view(text_).substr(at_);
      move_to(text_.size() - strip(rest, Ends::left).size());
    } else if (sign != '+' && drops_line_break && starts("\n")) {
      move_to(at_ + 1);
    }
  }

  bool end_inside(bool output) {
    if (!open_.empty()) return false;
    const std::string_view mark = output ? "}}" : "%}";
    const bool signed_mark =
        (starts("-") || (!output && starts("+"))) && std::string_view(text_).substr(at_ + 1).starts_with(mark);
    if (!signed_mark && !starts(mark)) return false;
    const char sign = signed_mark ? text_[at_] : ' ';
    add(output ? Token::Kind::end_output : Token::Kind::end_statement, "");
    move_to(at_ + mark.size() + (signed_mark ? 1 : 0));
    end_mark(sign, !output);
    return true;
  }

  void cut_inside(bool output) {
    add(output ? Token::Kind::begin_output : Token::Kind::begin_statement, "");
    const int first_line = line_;
    while (true) {
      const std::string_view rest = std::string_view(text_).substr(at_);
      move_to(text_.size() - strip(rest, Ends::left).size());
      if (at_ == text_.size()) throw source_.error(first_line, output ? "{{ has no end }}" : "{% has no end %}");
      if (end_inside(output)) return;
      cut_token();
    }
  }

  void cut_token() {
    const char letter = text_[at_];
    if (letter == '"' || letter == '\'') return cut_string(letter);
    if (is_digit(letter)) return cut_number();
    if (begins_name(letter)) {
      std::size_t end = at_;
      while (end < text_.size() && (begins_name(text_[end]) || is_digit(text_[end]))) ++end;
      const bool begins_statement = tokens_.back().kind == Token::Kind::begin_statement;
      add(Token::Kind::name, text_.substr(at_, end - at_));
      if (begins_statement && tokens_.back().text == "raw") throw fail("the statement 'raw' is not built in");
      return move_to(end);
    }
    const auto symbol =
        std::find_if(kSymbols.begin(), kSymbols.end(), [&](std::string_view each) { return starts(each); });
    if (symbol == kSymbols.end()) throw fail(fmt::format("'{}' is no part of an expression", character_at_hand()));
    balance((*symbol)[0]);
    add(Token::Kind::symbol, std::string(*symbol));
    move_to(at_ + symbol->size());
  }

  std::string character_at_hand() const {
    std::string character;
    append_code_point(character, code_point_at(text_, at_));
    return character;
  }

  void balance(char letter) {
    constexpr std::string_view kOpening = "([{", kClosing = ")]}";
    if (kOpening.find(letter) != std::string_view::npos) open_ += letter;
    const std::size_t closes = kClosing.find(letter);
    if (closes == std::string_view::npos) return;
    if (open_.empty() || open_.back() != kOpening[closes]) throw fail(fmt::format("'{}' closes nothing", letter));
    open_.pop_back();
  }

  void cut_number() {
    std::size_t end = at_;
    const auto digits = [&] {
      while (end < text_.size() &&
             (is_digit(text_[end]) || (text_[end] == '_' && end + 1 < text_.size() && is_digit(text_[end + 1]))))
        ++end;
    };
    const auto digit_behind = [&](std::size_t place) { return place < text_.size() && is_digit(text_[place]); };
    digits();
    bool real = false;
    // "a.0.b" reads an item: a point behind a name or bracket is no decimal one, and neither is this number's.
    const bool is_item = !tokens_.empty() && tokens_.back().is_symbol(".");
    if (!is_item && end < text_.size() && text_[end] == '.' && digit_behind(end + 1)) {
      real = true;
      ++end;
      digits();
    }
    const auto letter_at_end = [&](std::string_view letters) {
      return end < text_.size() && letters.find(text_[end]) != std::string_view::npos;
    };
    if (!is_item && letter_at_end("eE")) {
      const std::size_t exponent =
          end + (end + 1 < text_.size() && (text_[end + 1] == '-' || text_[end + 1] == '+') ? 2 : 1);
      if (digit_behind(exponent)) {
        real = true;
        end = exponent;
        digits();
      }
    }
    std::string number = text_.substr(at_, end - at_);
    if (end < text_.size() && begins_name(text_[end]))
      throw fail(fmt::format("the number '{}{}' is not built in", number, text_[end]));
    if (!real && number.size() > 1 && number[0] == '0' && number.find_first_not_of("0_") != std::string::npos)
      throw fail(fmt::format("the number '{}' begins with 0", number));
    std::erase(number, '_');
    add(real ? Token::Kind::real : Token::Kind::integer, std::move(number));
    move_to(end);
  }

  void cut_string(char mark) {
    std::string value;
    std::size_t at = at_ + 1;
    while (at < text_.size() && text_[at] != mark) {
      if (text_[at] == '\\') {
        at = cut_escape(at + 1, value);
      } else {
        value += text_[at++];
      }
    }
    if (at >= text_.size()) throw fail("a string has no end");
    add(Token::Kind::string, std::move(value));
    move_to(at + 1);
  }

  /// Appends what the escape behind the backslash stands for; the place behind it.
  std::size_t cut_escape(std::size_t at, std::string& value) {
    if (at >= text_.size()) throw fail("a string has no end");
    constexpr std::string_view kShort = "\\'\"abfnrtv", kMeant = "\\'\"\a\b\f\n\r\t\v";
    const char letter = text_[at];
    if (letter == '\n') return at + 1;
    if (const std::size_t found = kShort.find(letter); found != std::string_view::npos) {
      value += kMeant[found];
      return at + 1;
    }
    if (letter == 'N' || static_cast<unsigned char>(letter) >= 0x80)
      throw fail("an escape in a string is not built in");
    if (letter == 'x' || letter == 'u' || letter == 'U')
      return cut_code(at + 1, letter == 'x' ? 2 : letter == 'u' ? 4 : 8, 16, value);
    if (letter >= '0' && letter <= '7') {
      std::size_t digits = 1;
      while (digits < 3 && at + digits < text_.size() && text_[at + digits] >= '0' && text_[at + digits] <= '7')
        ++digits;
      return cut_code(at, digits, 8, value);
    }
    value += '\\';
    return at;  // what Python does not know, it leaves as it is
  }

  std::size_t cut_code(std::size_t at, std::size_t digits, int base, std::string& value) {
    const char* begin = text_.data() + at;
    std::uint32_t code = 0;
    if (at + digits > text_.size()) throw fail("a string has no end");
    const auto read = std::from_chars(begin, begin + digits, code, base);
    const bool surrogate = code >= 0xD800 && code < 0xE000;
    if (read.ec != std::errc() || read.ptr != begin + digits || code > 0x10FFFF || surrogate)
      throw fail("an escape in a string is no character");
    append_code_point(value, code);
    return at + digits;
  }

  std::string text_;
  const Source& source_;
  std::vector<Token> tokens_;
  std::string open_;  // brackets that are not closed yet
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_starts_ = true;  // what was last moved over ended a line
};

}  // namespace

std::string Source::place(int line_of_template) const {
  if (one_line) return fmt::format("{}:{}: line {} of the chat template", file, line, line_of_template);
  return fmt::format("{}:{}", file, line + line_of_template - 1);
}

Error Source::error(int line_of_template, const std::string& what) const {
  return Error(
      fmt::format("{}: {}; this chat template is not one that braid can render: set the task's 'chat' to "
                  "chatml or llama3 if that is its layout, or give input_ids, which scripts/pretokenize.py makes",
                  place(line_of_template), what));
}

std::vector<Token> tokens_of(std::string_view text, const Source& source) {
  if (const std::size_t bad = find_invalid_utf8(text); bad != std::string_view::npos) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(bad), '\n');
    throw source.error(static_cast<int>(line), "the chat template is not UTF-8");
  }
  return Lexer(with_line_feeds(text), source).cut();
}

}  // namespace braid::workload::jinja

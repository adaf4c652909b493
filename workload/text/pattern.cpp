#include "workload/text/pattern.h"

#include <cctype>

#include "base/error.h"
#include "workload/text/unicode.h"

namespace braid::workload {
namespace {

/// Rewrites an expression of Oniguruma's (in its Ruby syntax) as PCRE2's.
class Translator {
 public:
  explicit Translator(std::string_view source) : source_(source) {}

  std::string operator()() {
    while (at_ < source_.size()) {
      const char c = source_[at_];
      if (c == '\\') {
        escape(false);
      } else if (c == '[') {
        character_class();
      } else if (c == '(') {
        group();
      } else if (c == '{') {
        interval();
      } else {
        if (c == '^' || c == '$') refuse(std::string(1, c));
        take(1);
      }
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw error("the pattern {} holds {}, which is not built in", source_, what);
  }

  void take(std::size_t count) {
    out_ += source_.substr(at_, count);
    at_ += count;
  }

  char next(std::size_t ahead) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }

  void replace(std::size_t count, std::string_view with) {
    out_ += with;
    at_ += count;
  }

  void escape(bool in_class) {
    const char c = next(1);
    switch (c) {
      case 's':
        return replace(2, "\\p{White_Space}");
      case 'S':
        return replace(2, "\\P{White_Space}");
      case 'w':
        return replace(2, in_class ? "\\p{L}\\p{M}\\p{Nd}\\p{Pc}" : "[\\p{L}\\p{M}\\p{Nd}\\p{Pc}]");
      case 'W':
        if (in_class) refuse("\\W in a class");
        return replace(2, "[^\\p{L}\\p{M}\\p{Nd}\\p{Pc}]");
      case 'v':
        return replace(2, "\\x0b");
      case 'p':
      case 'P': {
        const std::size_t end = source_.find('}', at_);
        if (next(2) != '{' || end == std::string_view::npos) refuse("a property without braces");
        return take(end + 1 - at_);
      }
      case 'x':
        if (next(2) == '{' || std::isxdigit(static_cast<unsigned char>(next(2)))) return take(2);
        refuse("\\x without digits");
      case 'u':
        if (at_ + 6 > source_.size()) refuse("\\u without digits");
        out_ += fmt::format("\\x{{{}}}", source_.substr(at_ + 2, 4));
        at_ += 6;
        return;
      case 'd':
      case 'D':
      case 'r':
      case 'n':
      case 't':
      case 'f':
        return take(2);
      default:
        if (c == '\0' || std::isalnum(static_cast<unsigned char>(c))) refuse(fmt::format("\\{}", c));
        return take(c < 0 ? 1 + character_size(source_.substr(at_ + 1)) : 2);
    }
  }

  void character_class() {
    take(1);
    if (next(0) == '^') take(1);
    if (next(0) == ']') refuse("a class that begins with ]");
    while (next(0) != ']') {
      if (at_ >= source_.size()) refuse("a class without an end");
      if (source_[at_] == '[') refuse("a class within a class");
      if (source_.substr(at_).starts_with("&&")) refuse("&&");
      if (source_[at_] == '\\') {
        escape(true);
      } else {
        take(1);
      }
    }
    take(1);
  }

  void group() {
    if (next(1) != '?') return take(1);
    for (const std::string_view known : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?i)"}) {
      if (source_.substr(at_).starts_with(known)) return take(known.size());
    }
    refuse("a group of a kind (?...");
  }

  void interval() {
    const std::size_t end = source_.find('}', at_);
    const std::string_view counts = source_.substr(at_, end == std::string_view::npos ? 1 : end + 1 - at_);
    if (counts.size() < 3 || counts[1] == ',' || counts.find_first_not_of("{}0123456789,") != std::string_view::npos)
      refuse("{ that counts nothing");
    take(counts.size());
    // Oniguruma takes this for a repeated repetition, PCRE2 for a possessive one.
    if (next(0) == '+') refuse("+ behind }");
  }

  std::string_view source_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

Pattern::Pattern(const std::string& expression)
    : regex_(std::make_shared<const Regex>(Translator(expression)(), Regex::Characters::unicode)) {}

std::vector<ByteRange> Pattern::matches(std::string_view text) const {
  std::vector<ByteRange> found;
  for (std::size_t from = 0; from < text.size();) {
    const auto match = regex_->find(text, from);
    if (!match) break;
    if (match->end > match->begin) {
      found.push_back({match->begin, match->end});
      from = match->end;
    } else {
      from = match->end < text.size() ? match->end + character_size(text.substr(match->end)) : text.size();
    }
  }
  return found;
}

}  // namespace braid::workload

#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace braid {

/// What is given is no regular expression.
class BrokenRegex : public Error {
 public:
  using Error::Error;
};

/// A regular expression in PCRE2's syntax. Threads may share one.
class Regex {
 public:
  /// What a character is: a byte, which is what Python's `re` takes for one where text and expression are plain ASCII,
  /// or a character of UTF-8, with Unicode's classes and cases.
  enum class Characters { bytes, unicode };

  /// Throws BrokenRegex that says what is wrong with the expression and where.
  explicit Regex(const std::string& expression, Characters characters = Characters::bytes);
  ~Regex();
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  /// Whether it matches the whole text, as Python's re.fullmatch does. Throws Error where matching takes far too long.
  bool matches(std::string_view text) const;

  struct Match {
    std::size_t begin = 0, end = 0;
  };
  /// The first match that begins at byte `from` or behind it; what is before it counts for what looks back. Takes as
  /// long as it takes. Throws Error when the text is no UTF-8 where it has to be, which is asked where `from` is 0.
  std::optional<Match> find(std::string_view text, std::size_t from = 0) const;

 private:
  struct Code;
  std::string expression_;
  std::unique_ptr<Code> code_;
};

}  // namespace braid

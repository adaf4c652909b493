#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace braid::workload::jinja {

/// Where a template stands: its file, and the line of the file that its first line is. A template within a JSON file
/// stands on one line.
struct Source {
  std::string file;
  int line = 1;
  bool one_line = false;

  /// "FILE:LINE", with the template's own line where it stands on one of the file's.
  std::string place(int line_of_template) const;
  /// An Error of one line, with what to do about a template that is not built in.
  Error error(int line_of_template, const std::string& what) const;
};

struct Token {
  enum class Kind {
    text,  ///< outside all marks
    begin_output,
    end_output,  ///< of {{ }}
    begin_statement,
    end_statement,  ///< of {% %}
    name,
    string,   ///< without its quotes, escapes resolved
    integer,  ///< decimal, without underscores
    real,
    symbol,  ///< "==", "(", ...
    end,
  };
  Kind kind = Kind::end;
  std::string text;
  int line = 1;  ///< of the template

  bool is(Kind other, std::string_view word) const { return kind == other && text == word; }
  bool is_name(std::string_view word) const { return is(Kind::name, word); }
  bool is_symbol(std::string_view word) const { return is(Kind::symbol, word); }
};

/// The tokens of a template, the last of kind end, as Jinja 3.1 cuts it with trim_blocks and lstrip_blocks: a line
/// break behind {% %} and {# #} is dropped, as is what is blank in front of them on their line; "-" at a mark drops all
/// white space there and "+" none. Comments are left out. Throws Error for what is not built in and what is no Jinja.
std::vector<Token> tokens_of(std::string_view text, const Source& source);

}  // namespace braid::workload::jinja

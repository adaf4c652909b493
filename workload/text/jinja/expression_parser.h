#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "workload/text/jinja/lexer.h"
#include "workload/text/jinja/syntax.h"

namespace braid::workload::jinja {

/// Tokens one after another.
class TokenReader {
 public:
  TokenReader(std::vector<Token> tokens, const Source& source) : tokens_(std::move(tokens)), source_(source) {}

  const Token& at() const { return tokens_[place_]; }
  const Token& ahead() const { return tokens_[std::min(place_ + 1, tokens_.size() - 1)]; }
  const Token& take();
  bool take_symbol(std::string_view symbol);
  bool take_name(std::string_view name);
  void expect_symbol(std::string_view symbol);
  std::string expect_name();
  void expect(Token::Kind kind);

  Error fail(const std::string& what) const { return source_.error(at().line, what); }
  Error unexpected() const;

 private:
  std::vector<Token> tokens_;
  const Source& source_;
  std::size_t place_ = 0;
};

/// Expressions, with the precedences of Jinja 3.1: ~ binds more tightly than + and -.
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenReader& reader) : reader_(reader) {}

  ExpressionPointer expression(bool with_choice = true);
  /// Expressions behind commas make a tuple.
  ExpressionPointer expressions(bool with_choice = true);
  /// Filters behind `subject`.
  ExpressionPointer filters(ExpressionPointer subject);

  /// Marks an expression that is printed: "safe" as its last filter changes nothing and is dropped. Throws Error where
  /// another expression read since then has it, which would escape the text that it is joined with.
  void settle_safe(ExpressionPointer& printed);
  void check_safe() const;

  /// Names that were called, with their lines.
  const std::vector<std::pair<std::string, int>>& called() const { return called_; }

 private:
  class Nesting;

  ExpressionPointer either();
  ExpressionPointer both();
  ExpressionPointer negation();
  ExpressionPointer comparison();
  ExpressionPointer sum();
  ExpressionPointer concatenation();
  ExpressionPointer product();
  ExpressionPointer power();
  ExpressionPointer unary(bool with_filters = true);
  ExpressionPointer primary();
  ExpressionPointer constant_name(const Token& token);
  ExpressionPointer postfix(ExpressionPointer subject);
  ExpressionPointer filters_and_tests(ExpressionPointer subject);
  ExpressionPointer attribute(ExpressionPointer subject);
  ExpressionPointer subscript(ExpressionPointer subject);
  ExpressionPointer call(ExpressionPointer subject);
  ExpressionPointer test(ExpressionPointer subject);
  ExpressionPointer list();
  ExpressionPointer mapping();
  void arguments(Expression& call);
  void check_named_call(const Expression& filter) const;
  bool at_tuple_end() const;

  ExpressionPointer make(ExpressionKind kind) const;
  ExpressionPointer make(ExpressionKind kind, ExpressionPointer first, ExpressionPointer second = nullptr) const;

  TokenReader& reader_;
  std::vector<std::pair<std::string, int>> called_;
  int depth_ = 0, safe_ = 0;
};

}  // namespace braid::workload::jinja

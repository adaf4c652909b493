#include "workload/text/jinja/parser.h"

#include <algorithm>
#include <set>

#include "workload/text/jinja/expression_parser.h"
#include "workload/text/jinja/names.h"

namespace braid::workload::jinja {
namespace {

constexpr int kMostStatements = 100;  // in each other, which are read and run by recursion

class Parser {
 public:
  Parser(std::vector<Token> tokens, const Source& source)
      : source_(source), reader_(std::move(tokens), source), expressions_(reader_) {}

  Body read() {
    Body body = read_body({});
    expressions_.check_safe();
    check_calls();
    return body;
  }

 private:
  /// Statements up to one of these names, which is left for the caller; up to the template's end where there is none.
  Body read_body(const std::vector<std::string_view>& ends) {
    if (++depth_ > kMostStatements)
      throw reader_.fail(fmt::format("statements are nested more than {} deep", kMostStatements));
    Body body;
    while (true) {
      const Token& token = reader_.at();
      if (token.kind == Token::Kind::end) {
        if (!ends.empty()) throw reader_.fail(fmt::format("'{}' is missing", ends.back()));
        break;
      }
      if (token.kind == Token::Kind::begin_statement &&
          std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return reader_.ahead().is_name(end); })) {
        reader_.take();
        break;
      }
      read_one(body);
    }
    --depth_;
    return body;
  }

  void read_one(Body& body) {
    const Token token = reader_.take();
    Statement& made = body.emplace_back();
    made.line = token.line;
    if (token.kind == Token::Kind::text) {
      made.text = token.text;
    } else if (token.kind == Token::Kind::begin_output) {
      made.kind = Statement::Kind::output;
      made.value = expressions_.expressions();
      expressions_.settle_safe(made.value);
      reader_.expect(Token::Kind::end_output);
    } else {
      made = read_statement(token.line);
    }
  }

  Statement read_statement(int line) {
    const std::string name = reader_.expect_name();
    if (name == "if") return read_choice(line);
    if (name == "for") return read_loop(line);
    if (name == "set") return read_assignment(line);
    if (name == "macro") return read_macro(line);
    if (name == "generation") return read_generation(line);
    if (name == "break" || name == "continue") {
      if (loops_ == 0) throw source_.error(line, fmt::format("'{}' outside a loop", name));
      end_statement();
      return begun(name == "break" ? Statement::Kind::leave : Statement::Kind::next, line);
    }
    throw source_.error(line, fmt::format("the statement '{}' is not built in here", name));
  }

  static Statement begun(Statement::Kind kind, int line) {
    Statement made;
    made.kind = kind;
    made.line = line;
    return made;
  }

  void end_statement() { reader_.expect(Token::Kind::end_statement); }

  void end_body(std::string_view name) {
    if (!reader_.take_name(name)) throw reader_.unexpected();
    end_statement();
  }

  /// Behind "if" or "elif".
  Statement read_choice(int line) {
    Statement made = begun(Statement::Kind::choice, line);
    made.condition = expressions_.expressions(false);
    end_statement();
    made.body = read_body({"elif", "else", "endif"});
    if (reader_.take_name("elif")) {
      if (++depth_ > kMostStatements)
        throw reader_.fail(fmt::format("more than {} choices in a chain", kMostStatements));
      made.otherwise.push_back(read_choice(reader_.at().line));
      --depth_;
      return made;
    }
    if (reader_.take_name("else")) {
      end_statement();
      made.otherwise = read_body({"endif"});
    }
    end_body("endif");
    return made;
  }

  Target read_target(bool may_be_field) {
    Target target;
    target.names.push_back(read_new_name());
    if (may_be_field && reader_.take_symbol(".")) {
      target.field = reader_.expect_name();
      if (target.field.starts_with('_'))
        throw reader_.fail(fmt::format("the field '{}' begins with an underscore", target.field));
      return target;
    }
    while (reader_.take_symbol(",")) {
      target.is_tuple = true;
      if (reader_.at().kind != Token::Kind::name || reader_.at().is_name("in")) break;
      target.names.push_back(read_new_name());
    }
    return target;
  }

  std::string read_new_name() {
    const std::string name = reader_.expect_name();
    for (const std::string_view taken : {"true", "false", "none", "True", "False", "None", "loop", "namespace",
                                         "raise_exception", "range", "dict", "strftime_now"}) {
      if (name == taken) throw reader_.fail(fmt::format("a value for '{}' is not built in", name));
    }
    given_.insert(name);
    return name;
  }

  Statement read_loop(int line) {
    Statement made = begun(Statement::Kind::loop, line);
    made.target = read_target(false);
    if (!reader_.take_name("in")) throw reader_.fail("'in' is missing");
    made.value = expressions_.expressions(false);
    if (reader_.take_name("if")) made.condition = expressions_.expression();
    if (reader_.at().is_name("recursive")) throw reader_.fail("a recursive loop is not built in");
    end_statement();
    ++loops_;
    made.body = read_body({"else", "endfor"});
    --loops_;
    if (reader_.take_name("else")) {
      end_statement();
      made.otherwise = read_body({"endfor"});
    }
    end_body("endfor");
    return made;
  }

  Statement read_assignment(int line) {
    Statement made = begun(Statement::Kind::assign, line);
    made.target = read_target(true);
    if (reader_.take_symbol("=")) {
      made.value = expressions_.expressions();
      end_statement();
      return made;
    }
    made.kind = Statement::Kind::assign_block;
    if (made.target.is_tuple) throw reader_.fail("a block set of several names is not built in");
    made.value = expressions_.filters(nullptr);
    end_statement();
    made.body = read_body({"endset"});
    end_body("endset");
    return made;
  }

  Statement read_macro(int line) {
    Statement made = begun(Statement::Kind::macro, line);
    made.text = read_new_name();
    reader_.expect_symbol("(");
    while (!reader_.at().is_symbol(")")) {
      if (!made.parameters.empty()) reader_.expect_symbol(",");
      Parameter& parameter = made.parameters.emplace_back();
      parameter.name = read_new_name();
      if (reader_.take_symbol("=")) {
        parameter.otherwise = expressions_.expression();
      } else if (made.parameters.size() > 1 && made.parameters[made.parameters.size() - 2].otherwise) {
        throw reader_.fail("a parameter without a default follows one with a default");
      }
    }
    reader_.expect_symbol(")");
    end_statement();
    made.body = read_own_body("endmacro");
    return made;
  }

  Statement read_generation(int line) {
    end_statement();
    Statement made = begun(Statement::Kind::generation, line);
    made.body = read_own_body("endgeneration");
    return made;
  }

  /// A body that no loop outside can be left from.
  Body read_own_body(std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    Body body = read_body({end});
    loops_ = loops;
    end_body(end);
    return body;
  }

  /// That every name that is called is a function, or is given a value somewhere.
  void check_calls() const {
    for (const auto& [name, line] : expressions_.called()) {
      if (!is_known_function(name) && !given_.contains(name))
        throw source_.error(line, fmt::format("the function '{}' is not built in", name));
    }
  }

  const Source& source_;
  TokenReader reader_;
  ExpressionParser expressions_;
  std::set<std::string, std::less<>> given_;
  int depth_ = 0, loops_ = 0;
};

}  // namespace

Body parse(std::vector<Token> tokens, const Source& source) {
  return Parser(std::move(tokens), source).read();
}

}  // namespace braid::workload::jinja

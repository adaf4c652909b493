#include "workload/text/jinja/expression_parser.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "workload/text/jinja/names.h"

namespace braid::workload::jinja {
namespace {

constexpr int kMostNesting = 100;     // of brackets and the like in each other, which are read by recursion
constexpr int kMostOperations = 300;  // of operations in each other, which are evaluated by recursion

/// Names that stand for something that is not built in.
constexpr std::array<std::string_view, 8> kRefusedNames = {"lipsum", "cycler", "joiner", "varargs",
                                                           "kwargs", "caller", "self",   "super"};
constexpr std::array<std::string_view, 6> kComparisons = {"==", "!=", "<", "<=", ">", ">="};

}  // namespace

const Token& TokenReader::take() {
  const Token& token = tokens_[place_];
  if (place_ + 1 < tokens_.size()) ++place_;
  return token;
}

bool TokenReader::take_symbol(std::string_view symbol) {
  const bool there = at().is_symbol(symbol);
  if (there) take();
  return there;
}

bool TokenReader::take_name(std::string_view name) {
  const bool there = at().is_name(name);
  if (there) take();
  return there;
}

void TokenReader::expect_symbol(std::string_view symbol) {
  if (!take_symbol(symbol)) throw fail(fmt::format("'{}' is missing", symbol));
}

std::string TokenReader::expect_name() {
  if (at().kind != Token::Kind::name) throw fail("a name is missing");
  return take().text;
}

void TokenReader::expect(Token::Kind kind) {
  if (at().kind != kind) throw unexpected();
  take();
}

Error TokenReader::unexpected() const {
  switch (at().kind) {
    case Token::Kind::end:
    case Token::Kind::text:
    case Token::Kind::begin_output:
    case Token::Kind::begin_statement:
    case Token::Kind::end_output:
    case Token::Kind::end_statement:
      return fail("the expression or statement ends too early");
    default:
      return fail(fmt::format("'{}' is unexpected", at().text));
  }
}

/// Counts expressions in each other.
class ExpressionParser::Nesting {
 public:
  explicit Nesting(ExpressionParser& parser) : parser_(parser) {
    if (++parser_.depth_ > kMostNesting)
      throw parser_.reader_.fail(fmt::format("expressions are nested more than {} deep", kMostNesting));
  }
  ~Nesting() { --parser_.depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  ExpressionParser& parser_;
};

ExpressionPointer ExpressionParser::make(ExpressionKind kind) const {
  auto made = std::make_unique<Expression>();
  made->kind = kind;
  made->line = reader_.at().line;
  return made;
}

ExpressionPointer ExpressionParser::make(ExpressionKind kind, ExpressionPointer first, ExpressionPointer second) const {
  ExpressionPointer made = make(kind);
  if (first) made->line = first->line;
  for (ExpressionPointer* part : {&first, &second}) {
    if (*part) made->depth = std::max(made->depth, 1 + (*part)->depth);
  }
  if (made->depth > kMostOperations)
    throw reader_.fail(fmt::format("an expression of more than {} operations in each other", kMostOperations));
  made->parts.push_back(std::move(first));
  if (second) made->parts.push_back(std::move(second));
  return made;
}

ExpressionPointer ExpressionParser::expression(bool with_choice) {
  const Nesting nesting(*this);
  ExpressionPointer value = either();
  while (with_choice && reader_.take_name("if")) {
    ExpressionPointer made = make(ExpressionKind::choice, either());
    made->parts.push_back(std::move(value));
    made->parts.push_back(reader_.take_name("else") ? expression() : nullptr);
    value = std::move(made);
  }
  return value;
}

bool ExpressionParser::at_tuple_end() const {
  const Token& token = reader_.at();
  return token.kind == Token::Kind::end_output || token.kind == Token::Kind::end_statement || token.is_symbol(")");
}

ExpressionPointer ExpressionParser::expressions(bool with_choice) {
  ExpressionPointer first = expression(with_choice);
  if (!reader_.at().is_symbol(",")) return first;
  ExpressionPointer made = make(ExpressionKind::tuple, std::move(first));
  while (reader_.take_symbol(",") && !at_tuple_end()) made->parts.push_back(expression(with_choice));
  return made;
}

ExpressionPointer ExpressionParser::either() {
  ExpressionPointer left = both();
  while (reader_.take_name("or")) left = make(ExpressionKind::either, std::move(left), both());
  return left;
}

ExpressionPointer ExpressionParser::both() {
  ExpressionPointer left = negation();
  while (reader_.take_name("and")) left = make(ExpressionKind::both, std::move(left), negation());
  return left;
}

ExpressionPointer ExpressionParser::negation() {
  const Nesting nesting(*this);
  if (reader_.take_name("not")) return make(ExpressionKind::negation, negation());
  return comparison();
}

ExpressionPointer ExpressionParser::comparison() {
  ExpressionPointer first = sum();
  ExpressionPointer made;
  while (true) {
    const Token& token = reader_.at();
    std::string operation;
    if (token.kind == Token::Kind::symbol &&
        std::find(kComparisons.begin(), kComparisons.end(), token.text) != kComparisons.end()) {
      operation = reader_.take().text;
    } else if (reader_.take_name("in")) {
      operation = "in";
    } else if (token.is_name("not") && reader_.ahead().is_name("in")) {
      reader_.take();
      reader_.take();
      operation = "not in";
    } else {
      return made ? std::move(made) : std::move(first);
    }
    if (!made) made = make(ExpressionKind::comparison, std::move(first));
    made->operators.push_back(operation);
    made->parts.push_back(sum());
  }
}

ExpressionPointer ExpressionParser::sum() {
  ExpressionPointer left = concatenation();
  while (reader_.at().is_symbol("+") || reader_.at().is_symbol("-")) {
    const std::string operation = reader_.take().text;
    left = make(ExpressionKind::arithmetic, std::move(left), concatenation());
    left->name = operation;
  }
  return left;
}

ExpressionPointer ExpressionParser::concatenation() {
  ExpressionPointer first = product();
  if (!reader_.at().is_symbol("~")) return first;
  ExpressionPointer made = make(ExpressionKind::concatenate, std::move(first));
  while (reader_.take_symbol("~")) made->parts.push_back(product());
  return made;
}

ExpressionPointer ExpressionParser::product() {
  ExpressionPointer left = power();
  while (true) {
    const Token& token = reader_.at();
    if (!token.is_symbol("*") && !token.is_symbol("/") && !token.is_symbol("//") && !token.is_symbol("%")) return left;
    const std::string operation = reader_.take().text;
    left = make(ExpressionKind::arithmetic, std::move(left), power());
    left->name = operation;
  }
}

ExpressionPointer ExpressionParser::power() {
  ExpressionPointer left = unary();
  while (reader_.take_symbol("**")) {
    left = make(ExpressionKind::arithmetic, std::move(left), unary());
    left->name = "**";
  }
  return left;
}

ExpressionPointer ExpressionParser::unary(bool with_filters) {
  const Nesting nesting(*this);
  ExpressionPointer value;
  if (reader_.take_symbol("-")) {
    value = make(ExpressionKind::minus, unary(false));
  } else if (reader_.take_symbol("+")) {
    value = make(ExpressionKind::plus, unary(false));
  } else {
    value = primary();
  }
  value = postfix(std::move(value));
  return with_filters ? filters_and_tests(std::move(value)) : std::move(value);
}

ExpressionPointer ExpressionParser::constant_name(const Token& token) {
  ExpressionPointer made = make(ExpressionKind::constant);
  if (token.text == "true" || token.text == "True") return made->value = Value::boolean(true), std::move(made);
  if (token.text == "false" || token.text == "False") return made->value = Value::boolean(false), std::move(made);
  if (token.text == "none" || token.text == "None") return made;
  return nullptr;
}

ExpressionPointer ExpressionParser::primary() {
  const Token& token = reader_.at();
  if (token.is_symbol("[")) return list();
  if (token.is_symbol("{")) return mapping();
  if (reader_.take_symbol("(")) {
    ExpressionPointer value = reader_.at().is_symbol(")") ? make(ExpressionKind::tuple) : expressions();
    reader_.expect_symbol(")");
    return value;
  }
  ExpressionPointer made = make(ExpressionKind::constant);
  switch (token.kind) {
    case Token::Kind::name: {
      if (ExpressionPointer constant = constant_name(token)) return reader_.take(), std::move(constant);
      if (std::find(kRefusedNames.begin(), kRefusedNames.end(), token.text) != kRefusedNames.end())
        throw reader_.fail(fmt::format("the name '{}' is not built in", token.text));
      made->kind = ExpressionKind::name;
      made->name = reader_.take().text;
      return made;
    }
    case Token::Kind::string: {
      std::string text;
      while (reader_.at().kind == Token::Kind::string) text += reader_.take().text;
      made->value = Value::text(std::move(text));
      return made;
    }
    case Token::Kind::integer:
    case Token::Kind::real: {
      const char* end = token.text.data() + token.text.size();
      std::int64_t integer = 0;
      double real = 0;
      const bool fits = token.kind == Token::Kind::integer
                            ? std::from_chars(token.text.data(), end, integer).ec == std::errc()
                            : std::from_chars(token.text.data(), end, real).ec == std::errc();
      if (!fits) throw reader_.fail(fmt::format("the number {} is too large", token.text));
      made->value = token.kind == Token::Kind::integer ? Value::integer(integer) : Value::real(real);
      reader_.take();
      return made;
    }
    default:
      throw reader_.unexpected();
  }
}

ExpressionPointer ExpressionParser::list() {
  ExpressionPointer made = make(ExpressionKind::list);
  reader_.expect_symbol("[");
  while (!reader_.at().is_symbol("]")) {
    if (!made->parts.empty()) reader_.expect_symbol(",");
    if (reader_.at().is_symbol("]")) break;
    made->parts.push_back(expression());
  }
  reader_.expect_symbol("]");
  return made;
}

ExpressionPointer ExpressionParser::mapping() {
  ExpressionPointer made = make(ExpressionKind::mapping);
  reader_.expect_symbol("{");
  while (!reader_.at().is_symbol("}")) {
    if (!made->parts.empty()) reader_.expect_symbol(",");
    if (reader_.at().is_symbol("}")) break;
    made->parts.push_back(expression());
    reader_.expect_symbol(":");
    made->parts.push_back(expression());
  }
  reader_.expect_symbol("}");
  return made;
}

ExpressionPointer ExpressionParser::postfix(ExpressionPointer subject) {
  while (true) {
    if (reader_.at().is_symbol(".")) {
      subject = attribute(std::move(subject));
    } else if (reader_.at().is_symbol("[")) {
      subject = subscript(std::move(subject));
    } else if (reader_.at().is_symbol("(")) {
      subject = call(std::move(subject));
    } else {
      return subject;
    }
  }
}

ExpressionPointer ExpressionParser::attribute(ExpressionPointer subject) {
  reader_.expect_symbol(".");
  if (reader_.at().kind == Token::Kind::integer) {
    ExpressionPointer index = primary();
    return make(ExpressionKind::item, std::move(subject), std::move(index));
  }
  const std::string name = reader_.expect_name();
  if (name.starts_with("__")) throw reader_.fail(fmt::format("the attribute '{}' is not built in", name));
  ExpressionPointer made = make(ExpressionKind::attribute, std::move(subject));
  made->name = name;
  return made;
}

ExpressionPointer ExpressionParser::subscript(ExpressionPointer subject) {
  reader_.expect_symbol("[");
  const auto bound = [&]() -> ExpressionPointer {
    const Token& token = reader_.at();
    return token.is_symbol(":") || token.is_symbol("]") ? nullptr : expression();
  };
  ExpressionPointer first = bound();
  if (!reader_.at().is_symbol(":")) {
    if (!first) throw reader_.unexpected();
    reader_.expect_symbol("]");
    return make(ExpressionKind::item, std::move(subject), std::move(first));
  }
  ExpressionPointer made = make(ExpressionKind::slice, std::move(subject));
  made->parts.push_back(std::move(first));
  for (int i = 0; i < 2; ++i) made->parts.push_back(reader_.take_symbol(":") ? bound() : nullptr);
  reader_.expect_symbol("]");
  return made;
}

void ExpressionParser::arguments(Expression& call) {
  reader_.expect_symbol("(");
  bool first = true;
  while (!reader_.at().is_symbol(")")) {
    if (!first) reader_.expect_symbol(",");
    first = false;
    if (reader_.at().is_symbol(")")) break;
    if (reader_.at().is_symbol("*") || reader_.at().is_symbol("**"))
      throw reader_.fail("arguments that are unpacked with * are not built in");
    if (reader_.at().kind == Token::Kind::name && reader_.ahead().is_symbol("=")) {
      std::string keyword = reader_.take().text;
      reader_.take();
      const bool twice = std::any_of(call.keywords.begin(), call.keywords.end(),
                                     [&](const auto& each) { return each.first == keyword; });
      if (twice) throw reader_.fail(fmt::format("the argument '{}' is given twice", keyword));
      call.keywords.emplace_back(std::move(keyword), expression());
    } else {
      if (!call.keywords.empty()) throw reader_.fail("an argument without a name follows one with a name");
      call.arguments.push_back(expression());
    }
  }
  reader_.expect_symbol(")");
}

ExpressionPointer ExpressionParser::call(ExpressionPointer subject) {
  if (subject->kind == ExpressionKind::attribute) {
    if (!is_known_method(subject->name))
      throw reader_.fail(fmt::format("the method '{}' is not built in", subject->name));
    subject->kind = ExpressionKind::method;
  } else if (subject->kind == ExpressionKind::name) {
    called_.emplace_back(subject->name, subject->line);
    subject->kind = ExpressionKind::call;
  } else {
    throw reader_.fail("a call of what is neither a name nor a method is not built in");
  }
  arguments(*subject);
  return subject;
}

/// Of what `map` and the selections call by its name, where the name stands there.
void ExpressionParser::check_named_call(const Expression& filter) const {
  const bool maps = filter.name == "map", of_attribute = filter.name == "selectattr" || filter.name == "rejectattr";
  if (!maps && !of_attribute && filter.name != "select" && filter.name != "reject") return;
  const std::size_t place = of_attribute ? 1 : 0;
  if (filter.arguments.size() <= place) return;
  const std::string* name = filter.arguments[place]->value.as_text();
  if (filter.arguments[place]->kind != ExpressionKind::constant || !name) return;
  if (maps ? !is_known_filter(*name) : !is_known_test(*name))
    throw reader_.fail(fmt::format("the {} '{}' is not built in", maps ? "filter" : "test", *name));
}

ExpressionPointer ExpressionParser::filters(ExpressionPointer subject) {
  while (reader_.take_symbol("|")) {
    ExpressionPointer made = make(ExpressionKind::filter, std::move(subject));
    made->line = reader_.at().line;
    made->name = reader_.expect_name();
    if (made->name == "safe") {
      ++safe_;
    } else if (!is_known_filter(made->name))
      throw reader_.fail(fmt::format("the filter '{}' is not built in", made->name));
    if (reader_.at().is_symbol("(")) arguments(*made);
    check_named_call(*made);
    subject = std::move(made);
  }
  return subject;
}

void ExpressionParser::check_safe() const {
  if (safe_ > 0) throw reader_.fail("the filter 'safe' is not built in but at the end of what is printed");
}

void ExpressionParser::settle_safe(ExpressionPointer& printed) {
  while (printed->kind == ExpressionKind::filter && printed->name == "safe") {
    if (!printed->arguments.empty() || !printed->keywords.empty())
      throw reader_.fail("the filter 'safe' has arguments");
    ExpressionPointer inner = std::move(printed->parts[0]);
    printed = std::move(inner);
    --safe_;
  }
  check_safe();
}

ExpressionPointer ExpressionParser::filters_and_tests(ExpressionPointer subject) {
  while (true) {
    if (reader_.at().is_symbol("|")) {
      subject = filters(std::move(subject));
    } else if (reader_.at().is_name("is")) {
      subject = test(std::move(subject));
    } else if (reader_.at().is_symbol("(")) {
      subject = call(std::move(subject));
    } else {
      return subject;
    }
  }
}

ExpressionPointer ExpressionParser::test(ExpressionPointer subject) {
  reader_.take();
  const bool negated = reader_.take_name("not");
  ExpressionPointer made = make(ExpressionKind::test, std::move(subject));
  made->name = reader_.expect_name();
  if (!is_known_test(made->name)) throw reader_.fail(fmt::format("the test '{}' is not built in", made->name));
  const Token& token = reader_.at();
  const bool ends = token.is_name("else") || token.is_name("or") || token.is_name("and");
  if (token.is_name("is")) throw reader_.fail("a test of a test is no Jinja");
  if (token.is_symbol("(")) {
    arguments(*made);
  } else if ((token.kind == Token::Kind::name && !ends) || token.kind == Token::Kind::string ||
             token.kind == Token::Kind::integer || token.kind == Token::Kind::real || token.is_symbol("[") ||
             token.is_symbol("{")) {
    made->arguments.push_back(postfix(primary()));
  }
  return negated ? make(ExpressionKind::negation, std::move(made)) : std::move(made);
}

}  // namespace braid::workload::jinja

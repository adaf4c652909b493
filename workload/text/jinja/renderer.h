#pragma once

#include <string>
#include <string_view>

#include "workload/text/jinja/calls.h"
#include "workload/text/jinja/loop.h"
#include "workload/text/jinja/syntax.h"

namespace braid::workload::jinja {

/// Runs a template's statements once. Assignments within a loop, a macro, a block set or a generation block end with
/// it, as in Jinja; only fields of namespaces outlast it.
class Renderer {
 public:
  explicit Renderer(const Fields& variables);

  /// Throws Raised for what the template says, and Error for what cannot be done.
  std::string run(const Body& body);
  /// The template's line that was last at work.
  int line() const { return line_; }

 private:
  /// How a statement ends: a loop is left, or goes on with its next item.
  enum class Flow { on, leave, next };

  struct Scope {
    Scope* outer = nullptr;
    Fields variables;
  };
  class Nested;  // counts calls in each other

  Flow run_body(const Body& body, Scope& scope);
  Flow run_one(const Statement& statement, Scope& scope);
  Flow run_loop(const Statement& statement, Scope& scope);
  std::string run_apart(const Body& body, Scope& scope, Flow& flow);
  Items items_of_loop(const Statement& statement, Scope& scope);
  void write(std::string_view text);

  static void set(Scope& scope, const std::string& name, Value value);
  void assign(const Target& target, Value value, Scope& scope);
  Value variable(std::string_view name, const Scope& scope) const;

  Value evaluate(const Expression& expression, Scope& scope);
  Value evaluate_part(const Expression& expression, std::size_t place, Scope& scope);
  Value evaluate_call(const Expression& expression, Scope& scope);
  Value evaluate_mapping(const Expression& expression, Scope& scope);
  Value evaluate_comparison(const Expression& expression, Scope& scope);
  Value evaluate_concatenation(const Expression& expression, Scope& scope);
  Items evaluate_all(const std::vector<ExpressionPointer>& expressions, Scope& scope);
  Arguments evaluate_arguments(const Expression& expression, Scope& scope);
  Value call_macro(const MacroInScope& called, const Arguments& arguments);

  Budget budget_;
  Scope global_;
  std::string output_;
  int call_depth_ = 0;
  int line_ = 1;
};

}  // namespace braid::workload::jinja

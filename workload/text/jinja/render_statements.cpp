#include <utility>

#include "workload/text/jinja/renderer.h"

namespace braid::workload::jinja {

class Renderer::Nested {
 public:
  explicit Nested(Renderer& renderer) : renderer_(renderer) {
    constexpr int kMostCalls = 50;
    if (++renderer_.call_depth_ > kMostCalls) {
      --renderer_.call_depth_;
      throw error("macros call each other more than {} deep", kMostCalls);
    }
  }
  ~Nested() { --renderer_.call_depth_; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  Renderer& renderer_;
};

Renderer::Renderer(const Fields& variables) {
  global_.variables = variables;
}

std::string Renderer::run(const Body& body) {
  run_body(body, global_);
  return std::move(output_);
}

Renderer::Flow Renderer::run_body(const Body& body, Scope& scope) {
  for (const Statement& statement : body) {
    budget_.charge();
    if (const Flow flow = run_one(statement, scope); flow != Flow::on) return flow;
  }
  return Flow::on;
}

Renderer::Flow Renderer::run_one(const Statement& statement, Scope& scope) {
  line_ = statement.line;
  Flow flow = Flow::on;
  switch (statement.kind) {
    case Statement::Kind::text:
      write(statement.text);
      break;
    case Statement::Kind::output:
      write(print(evaluate(*statement.value, scope)));
      break;
    case Statement::Kind::choice:
      return run_body(evaluate(*statement.condition, scope).truth() ? statement.body : statement.otherwise, scope);
    case Statement::Kind::loop:
      return run_loop(statement, scope);
    case Statement::Kind::assign:
      assign(statement.target, evaluate(*statement.value, scope), scope);
      break;
    case Statement::Kind::assign_block: {
      std::string text = run_apart(statement.body, scope, flow);
      if (flow != Flow::on) break;
      Value value = Value::text(std::move(text));
      if (statement.value) {
        Scope filtered{&scope, {}};
        set(filtered, "", std::move(value));
        value = evaluate(*statement.value, filtered);
      }
      assign(statement.target, std::move(value), scope);
      break;
    }
    case Statement::Kind::macro:
      set(scope, statement.text,
          Value(Value::Held(std::make_shared<const MacroInScope>(MacroInScope{&statement, &scope}))));
      break;
    case Statement::Kind::generation:
      write(run_apart(statement.body, scope, flow));
      break;
    case Statement::Kind::leave:
      return Flow::leave;
    case Statement::Kind::next:
      return Flow::next;
  }
  return flow;
}

/// What statements print, in a scope of their own.
std::string Renderer::run_apart(const Body& body, Scope& scope, Flow& flow) {
  std::string before = std::exchange(output_, {});
  Scope inner{&scope, {}};
  flow = run_body(body, inner);
  return std::exchange(output_, std::move(before));
}

Items Renderer::items_of_loop(const Statement& statement, Scope& scope) {
  Items items = walk(evaluate(*statement.value, scope));
  budget_.charge(items.size());
  if (!statement.condition) return items;
  Items kept;
  for (Value& item : items) {
    Scope inner{&scope, {}};
    assign(statement.target, item, inner);
    if (evaluate(*statement.condition, inner).truth()) kept.push_back(std::move(item));
  }
  return kept;
}

Renderer::Flow Renderer::run_loop(const Statement& statement, Scope& scope) {
  const Items items = items_of_loop(statement, scope);
  if (items.empty()) {
    Scope inner{&scope, {}};
    return run_body(statement.otherwise, inner);
  }
  Loop loop{&items, 0};
  for (; loop.index < items.size(); ++loop.index) {
    Scope inner{&scope, {}};
    set(inner, "loop", Value(Value::Held(static_cast<const Loop*>(&loop))));
    assign(statement.target, items[loop.index], inner);
    if (run_body(statement.body, inner) == Flow::leave) break;
  }
  return Flow::on;
}

void Renderer::write(std::string_view text) {
  budget_.charge_text(text.size(), output_.size() + text.size());
  output_ += text;
}

void Renderer::set(Scope& scope, const std::string& name, Value value) {
  if (Value* known = find_field(scope.variables, name)) {
    *known = std::move(value);
  } else {
    scope.variables.emplace_back(name, std::move(value));
  }
}

void Renderer::assign(const Target& target, Value value, Scope& scope) {
  if (!target.field.empty()) {
    const Value held = variable(target.names[0], scope);
    if (!held.as_space()) throw error("'{}' is {}, not a namespace", target.names[0], held.kind());
    check_may_be_held(value);
    Fields& fields = held.as_space()->fields;
    if (Value* known = find_field(fields, target.field)) {
      *known = std::move(value);
    } else {
      fields.emplace_back(target.field, std::move(value));
    }
    return;
  }
  if (!target.is_tuple) return set(scope, target.names[0], std::move(value));
  Items items = walk(value);
  if (items.size() != target.names.size()) throw error("{} values for {} names", items.size(), target.names.size());
  for (std::size_t i = 0; i < items.size(); ++i) set(scope, target.names[i], std::move(items[i]));
}

Value Renderer::variable(std::string_view name, const Scope& scope) const {
  for (const Scope* at = &scope; at; at = at->outer) {
    if (const Value* found = find_field(at->variables, name)) return *found;
  }
  return Value::undefined(fmt::format("'{}' is undefined", name));
}

Value Renderer::call_macro(const MacroInScope& called, const Arguments& arguments) {
  const Nested nested(*this);
  const Statement& macro = *called.macro;
  if (arguments.values.size() > macro.parameters.size())
    throw error("the macro '{}' is given {} arguments", macro.text, arguments.values.size());
  Scope inner{static_cast<Scope*>(called.scope), {}};
  std::size_t used = 0;
  for (std::size_t i = 0; i < macro.parameters.size(); ++i) {
    const Parameter& parameter = macro.parameters[i];
    const Value* named = find_field(arguments.named, parameter.name);
    if (named && i < arguments.values.size())
      throw error("the macro '{}' is given '{}' twice", macro.text, parameter.name);
    if (named) ++used;
    if (i < arguments.values.size()) {
      set(inner, parameter.name, arguments.values[i]);
    } else if (named) {
      set(inner, parameter.name, *named);
    } else if (parameter.otherwise) {
      set(inner, parameter.name, evaluate(*parameter.otherwise, inner));
    } else {
      set(inner, parameter.name, Value::undefined(fmt::format("parameter '{}' was not provided", parameter.name)));
    }
  }
  if (used < arguments.named.size()) throw error("the macro '{}' is given an argument that it has not", macro.text);
  std::string before = std::exchange(output_, {});
  run_body(macro.body, inner);
  return Value::text(std::exchange(output_, std::move(before)));
}

}  // namespace braid::workload::jinja

#include <algorithm>

#include "workload/text/jinja/names.h"
#include "workload/text/jinja/renderer.h"

namespace braid::workload::jinja {

Items Renderer::evaluate_all(const std::vector<ExpressionPointer>& expressions, Scope& scope) {
  Items items;
  items.reserve(expressions.size());
  for (const ExpressionPointer& each : expressions) items.push_back(evaluate(*each, scope));
  return items;
}

Value Renderer::evaluate_part(const Expression& expression, std::size_t place, Scope& scope) {
  const ExpressionPointer& part = expression.parts[place];
  return part ? evaluate(*part, scope) : Value();
}

Arguments Renderer::evaluate_arguments(const Expression& expression, Scope& scope) {
  Arguments arguments;
  arguments.values = evaluate_all(expression.arguments, scope);
  for (const auto& [name, value] : expression.keywords) arguments.named.emplace_back(name, evaluate(*value, scope));
  return arguments;
}

Value Renderer::evaluate(const Expression& expression, Scope& scope) {
  budget_.charge();
  line_ = expression.line;
  const auto part = [&](std::size_t place) { return evaluate_part(expression, place, scope); };
  switch (expression.kind) {
    case ExpressionKind::constant:
      return expression.value;
    case ExpressionKind::name: {
      Value value = variable(expression.name, scope);
      if (value.is_undefined() && is_known_function(expression.name))
        return Value(Value::Held(Function{expression.name}));
      return value;
    }
    case ExpressionKind::list:
      return Value::list(evaluate_all(expression.parts, scope));
    case ExpressionKind::tuple:
      return Value::tuple(evaluate_all(expression.parts, scope));
    case ExpressionKind::mapping:
      return evaluate_mapping(expression, scope);
    case ExpressionKind::attribute:
      return attribute_of(part(0), expression.name);
    case ExpressionKind::item: {
      const Value subject = part(0);
      return item_of(subject, part(1));
    }
    case ExpressionKind::slice: {
      const Value subject = part(0), first = part(1), last = part(2), step = part(3);
      if (const Sequence* sequence = subject.as_sequence()) budget_.charge(sequence->items.size());
      if (const std::string* text = subject.as_text()) budget_.charge_text(text->size());
      return slice_of(subject, first, last, step);
    }
    case ExpressionKind::call:
      return evaluate_call(expression, scope);
    case ExpressionKind::method: {
      const Value subject = part(0);
      return call_method(expression.name, subject, evaluate_arguments(expression, scope), budget_);
    }
    case ExpressionKind::filter: {
      // The filters of a block set have what was printed under no name.
      const Value subject = expression.parts[0] ? part(0) : variable("", scope);
      return apply_filter(expression.name, subject, evaluate_arguments(expression, scope), budget_);
    }
    case ExpressionKind::test: {
      const Value subject = part(0);
      return Value::boolean(passes_test(expression.name, subject, evaluate_arguments(expression, scope)));
    }
    case ExpressionKind::negation:
      return Value::boolean(!part(0).truth());
    case ExpressionKind::minus:
      return calculate("-", Value::integer(0), part(0), budget_);
    case ExpressionKind::plus:
      return calculate("+", Value::integer(0), part(0), budget_);
    case ExpressionKind::both: {
      Value left = part(0);
      return left.truth() ? part(1) : left;
    }
    case ExpressionKind::either: {
      Value left = part(0);
      return left.truth() ? left : part(1);
    }
    case ExpressionKind::choice:
      if (part(0).truth()) return part(1);
      return expression.parts[2] ? part(2) : Value::undefined("a choice without 'else' has no value");
    case ExpressionKind::comparison:
      return evaluate_comparison(expression, scope);
    case ExpressionKind::concatenate:
      return evaluate_concatenation(expression, scope);
    case ExpressionKind::arithmetic: {
      const Value left = part(0);
      return calculate(expression.name, left, part(1), budget_);
    }
  }
  return {};
}

Value Renderer::evaluate_call(const Expression& expression, Scope& scope) {
  const Value called = variable(expression.name, scope);
  const Arguments arguments = evaluate_arguments(expression, scope);
  line_ = expression.line;
  if (const auto* macro = called.get<std::shared_ptr<const MacroInScope>>()) return call_macro(**macro, arguments);
  if (const Function* function = called.get<Function>()) return call_function(function->name, arguments, budget_);
  if (called.is_undefined() && is_known_function(expression.name))
    return call_function(expression.name, arguments, budget_);
  if (const Undefined* undefined = called.get<Undefined>()) throw error("{}", *undefined->what);
  throw error("{} is called", called.kind());
}

Value Renderer::evaluate_mapping(const Expression& expression, Scope& scope) {
  Fields fields;
  for (std::size_t i = 0; i < expression.parts.size(); i += 2) {
    const Value key = evaluate_part(expression, i, scope);
    if (!key.as_text()) throw error("a mapping with {} for a key is not built in", key.kind());
    Value value = evaluate_part(expression, i + 1, scope);
    if (Value* known = find_field(fields, *key.as_text())) {
      *known = std::move(value);
    } else {
      fields.emplace_back(*key.as_text(), std::move(value));
    }
  }
  return Value::mapping(std::move(fields));
}

Value Renderer::evaluate_comparison(const Expression& expression, Scope& scope) {
  Value left = evaluate_part(expression, 0, scope);
  for (std::size_t i = 0; i < expression.operators.size(); ++i) {
    const std::string& operation = expression.operators[i];
    Value right = evaluate_part(expression, i + 1, scope);
    if (operation == "in" || operation == "not in") {
      if (const Sequence* sequence = right.as_sequence()) budget_.charge(sequence->items.size());
      if (const std::string* text = right.as_text()) budget_.charge_text(text->size());
      if (holds(right, left) != (operation == "in")) return Value::boolean(false);
    } else {
      Arguments other;
      other.values.push_back(right);
      const bool ordered = operation != "==" && operation != "!=";
      for (const Value* value : {&left, &right}) {
        const Undefined* undefined = value->get<Undefined>();
        if (ordered && undefined) throw error("{}", *undefined->what);
      }
      if (!passes_test(operation, left, other)) return Value::boolean(false);
    }
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Renderer::evaluate_concatenation(const Expression& expression, Scope& scope) {
  std::string text;
  for (const ExpressionPointer& part : expression.parts) {
    const std::string more = print(evaluate(*part, scope));
    text += more;
    budget_.charge_text(more.size(), text.size());
  }
  return Value::text(std::move(text));
}

}  // namespace braid::workload::jinja

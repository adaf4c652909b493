#include <cmath>
#include <limits>

#include "workload/text/jinja/calls.h"

namespace braid::workload::jinja {
namespace {

void refuse_overflow(bool overflows) {
  if (overflows) throw error("a number is too large");
}

void check_divisor(bool zero) {
  if (zero) throw error("a number is divided by 0");
}

Value power_of(std::int64_t base, std::int64_t exponent) {
  check_divisor(base == 0 && exponent < 0);
  if (exponent < 0) return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  std::int64_t result = 1;
  if (base == 0 || base == 1) return Value::integer(exponent == 0 ? 1 : base);
  if (base == -1) return Value::integer(exponent % 2 == 0 ? 1 : -1);
  for (; exponent > 0; --exponent) {
    refuse_overflow(__builtin_mul_overflow(result, base, &result));
  }
  return Value::integer(result);
}

Value of_integers(std::string_view operation, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (operation == "+" || operation == "-" || operation == "*") {
    refuse_overflow(operation == "+"   ? __builtin_add_overflow(a, b, &result)
                    : operation == "-" ? __builtin_sub_overflow(a, b, &result)
                                       : __builtin_mul_overflow(a, b, &result));
    return Value::integer(result);
  }
  if (operation == "**") return power_of(a, b);
  check_divisor(b == 0);
  if (operation == "/") return Value::real(static_cast<double>(a) / static_cast<double>(b));
  if (b == -1) return operation == "%" ? Value::integer(0) : of_integers("-", 0, a);
  // Python rounds down, and the remainder has the divisor's sign.
  const bool inexact_below = a % b != 0 && (a < 0) != (b < 0);
  if (operation == "//") return Value::integer(a / b - (inexact_below ? 1 : 0));
  return Value::integer(a % b + (inexact_below ? b : 0));
}

Value of_reals(std::string_view operation, double a, double b) {
  if (operation == "+") return Value::real(a + b);
  if (operation == "-") return Value::real(a - b);
  if (operation == "*") return Value::real(a * b);
  if (operation == "/") return check_divisor(b == 0), Value::real(a / b);
  throw error("'{}' of a number with a point is not built in", operation);
}

Value repeated(const Value& value, std::int64_t times, Budget& budget) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(times, 0));
  if (const std::string* text = value.as_text()) {
    if (!text->empty())
      budget.charge_text(count > (std::size_t{1} << 32U) / text->size() ? SIZE_MAX : count * text->size());
    std::string result;
    if (!text->empty()) {
      for (std::size_t i = 0; i < count; ++i) result += *text;
    }
    return Value::text(std::move(result));
  }
  const Sequence& sequence = *value.as_sequence();
  Items items;
  if (sequence.items.empty()) return value;
  for (std::size_t i = 0; i < count; ++i) {
    budget.charge(sequence.items.size());
    items.insert(items.end(), sequence.items.begin(), sequence.items.end());
  }
  return Value::sequence(sequence.kind, std::move(items));
}

bool is_repeatable(const Value& value) {
  const Sequence* sequence = value.as_sequence();
  return value.as_text() || (sequence && sequence->kind != Sequence::Kind::view);
}

Value joined_with(const Value& left, const Value& right, Budget& budget) {
  if (left.as_text() && right.as_text()) {
    budget.charge_text(left.as_text()->size() + right.as_text()->size());
    return Value::text(*left.as_text() + *right.as_text());
  }
  const Sequence *a = left.as_sequence(), *b = right.as_sequence();
  if (!a || !b || a->kind != b->kind || a->kind == Sequence::Kind::view)
    throw error("{} + {}", left.kind(), right.kind());
  budget.charge(a->items.size() + b->items.size());
  Items items = a->items;
  items.insert(items.end(), b->items.begin(), b->items.end());
  return Value::sequence(a->kind, std::move(items));
}

}  // namespace

Value calculate(std::string_view operation, const Value& left, const Value& right, Budget& budget) {
  for (const Value* value : {&left, &right}) {
    if (const Undefined* undefined = value->get<Undefined>()) throw error("{}", *undefined->what);
  }
  std::int64_t a = 0, b = 0;
  if (integer_of(left, a) && integer_of(right, b)) return of_integers(operation, a, b);
  if (is_number(left) && is_number(right)) return of_reals(operation, real_of(left), real_of(right));
  if (operation == "+") return joined_with(left, right, budget);
  if (operation == "*" && is_repeatable(left) && integer_of(right, b)) return repeated(left, b, budget);
  if (operation == "*" && is_repeatable(right) && integer_of(left, a)) return repeated(right, a, budget);
  throw error("{} {} {}", left.kind(), operation, right.kind());
}

}  // namespace braid::workload::jinja

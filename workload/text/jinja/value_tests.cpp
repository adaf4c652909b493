#include <algorithm>
#include <utility>

#include "workload/text/jinja/calls.h"
#include "workload/text/jinja/names.h"

namespace braid::workload::jinja {
namespace {

using TestFunction = bool (*)(const Value& subject, const Value& other);

struct ValueTest {
  std::string_view name;
  bool compares;  ///< with an argument
  TestFunction passes;
};

bool is_sequence(const Value& value) {
  const Sequence* sequence = value.as_sequence();
  if (sequence && sequence->kind == Sequence::Kind::view) throw error("whether {} is a sequence", value.kind());
  return sequence || value.as_text() || value.as_mapping() || value.is_undefined();
}

bool is_walkable(const Value& value) {
  return value.as_sequence() || value.as_text() || value.as_mapping() || value.is_undefined() ||
         value.get<std::shared_ptr<Cursor>>() || value.get<const Loop*>();
}

std::int64_t remainder(const Value& value, std::int64_t divisor) {
  const std::int64_t number = integer_argument(value, "a test");
  if (divisor == 0) throw error("a number is divided by 0");
  return divisor == -1 ? 0 : number % divisor;
}

/// Of what there is one alone of.
bool is_same(const Value& value, const Value& other) {
  if (other.is_none()) return value.is_none();
  if (!other.get<bool>()) throw error("'sameas' {} is not built in", other.kind());
  return value.get<bool>() && *value.get<bool>() == *other.get<bool>();
}

bool is_less(const Value& value, const Value& other) {
  return less(value, other);
}
bool is_greater(const Value& value, const Value& other) {
  return less(other, value);
}
bool is_at_most(const Value& value, const Value& other) {
  return less(value, other) || equal(value, other);
}
bool is_at_least(const Value& value, const Value& other) {
  return less(other, value) || equal(value, other);
}
bool is_unequal(const Value& value, const Value& other) {
  return !equal(value, other);
}
bool is_truth(const Value& value, bool truth) {
  return value.get<bool>() && *value.get<bool>() == truth;
}

constexpr ValueTest kTests[] = {
    {"defined", false, [](const Value& value, const Value&) { return !value.is_undefined(); }},
    {"undefined", false, [](const Value& value, const Value&) { return value.is_undefined(); }},
    {"none", false, [](const Value& value, const Value&) { return value.is_none(); }},
    {"boolean", false, [](const Value& value, const Value&) { return value.get<bool>() != nullptr; }},
    {"true", false, [](const Value& value, const Value&) { return is_truth(value, true); }},
    {"false", false, [](const Value& value, const Value&) { return is_truth(value, false); }},
    {"integer", false, [](const Value& value, const Value&) { return value.get<std::int64_t>() != nullptr; }},
    {"float", false, [](const Value& value, const Value&) { return value.get<double>() != nullptr; }},
    {"number", false, [](const Value& value, const Value&) { return is_number(value); }},
    {"string", false, [](const Value& value, const Value&) { return value.as_text() != nullptr; }},
    {"mapping", false, [](const Value& value, const Value&) { return value.as_mapping() != nullptr; }},
    {"sequence", false, [](const Value& value, const Value&) { return is_sequence(value); }},
    {"iterable", false, [](const Value& value, const Value&) { return is_walkable(value); }},
    {"odd", false, [](const Value& value, const Value&) { return remainder(value, 2) != 0; }},
    {"even", false, [](const Value& value, const Value&) { return remainder(value, 2) == 0; }},
    {"divisibleby", true,
     [](const Value& value, const Value& other) { return remainder(value, integer_argument(other, "a test")) == 0; }},
    {"sameas", true, is_same},
    {"in", true, [](const Value& value, const Value& other) { return holds(other, value); }},
    {"==", true, equal},
    {"eq", true, equal},
    {"equalto", true, equal},
    {"!=", true, is_unequal},
    {"ne", true, is_unequal},
    {"<", true, is_less},
    {"lt", true, is_less},
    {"lessthan", true, is_less},
    {"<=", true, is_at_most},
    {"le", true, is_at_most},
    {">", true, is_greater},
    {"gt", true, is_greater},
    {"greaterthan", true, is_greater},
    {">=", true, is_at_least},
    {"ge", true, is_at_least},
};

}  // namespace

bool is_known_test(std::string_view name) {
  return std::any_of(std::begin(kTests), std::end(kTests), [&](const ValueTest& each) { return each.name == name; });
}

bool passes_test(std::string_view name, const Value& subject, const Arguments& arguments) {
  const auto* const test =
      std::find_if(std::begin(kTests), std::end(kTests), [&](const ValueTest& each) { return each.name == name; });
  if (test == std::end(kTests)) throw error("the test '{}' is not built in", name);
  if (!test->compares) {
    arguments.expect(name, {});
    return test->passes(subject, {});
  }
  arguments.expect(name, {""}, 1);
  return test->passes(subject, arguments.values[0]);
}

}  // namespace braid::workload::jinja

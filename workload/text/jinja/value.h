#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/node.h"

/// What expressions of a template give: Python's values, as far as chat templates use them.
namespace braid::workload::jinja {

class Value;
struct MacroInScope;
struct Loop;

using Items = std::vector<Value>;
using Fields = std::vector<std::pair<std::string, Value>>;

/// A name or attribute that is not there; `what` says which.
struct Undefined {
  std::shared_ptr<const std::string> what;
};
struct None {};
using Text = std::shared_ptr<const std::string>;

/// Immutable, as all values of a template but namespaces are. A view is what keys(), range() and the like give: it can
/// be walked and counted, but neither printed nor indexed here.
struct Sequence {
  enum class Kind { list, tuple, view };
  Kind kind = Kind::list;
  Items items;
  int depth = 1;  ///< of sequences and mappings in each other, itself included
};
/// Keys are texts, in the order in which they came.
struct Mapping {
  Fields fields;
  int depth = 1;

  const Value* find(std::string_view key) const;
};
/// What map, select and their like give: it can be walked once.
struct Cursor {
  Items items;
  std::size_t at = 0;
};
/// namespace(): the one thing whose fields can be set.
struct Space {
  Fields fields;
};
/// One of the functions that every template knows.
struct Function {
  std::string_view name;
};

class Value {
 public:
  using Held = std::variant<Undefined, None, bool, std::int64_t, double, Text, std::shared_ptr<const Sequence>,
                            std::shared_ptr<const Mapping>, std::shared_ptr<Cursor>, std::shared_ptr<Space>, Function,
                            std::shared_ptr<const MacroInScope>, const Loop*>;

  Value() : held_(None{}) {}
  explicit Value(Held held) : held_(std::move(held)) {}

  static Value undefined(std::string what);
  static Value boolean(bool truth) { return Value(Held(truth)); }
  static Value integer(std::int64_t number) { return Value(Held(number)); }
  static Value real(double number) { return Value(Held(number)); }
  static Value text(std::string text) { return Value(Held(std::make_shared<const std::string>(std::move(text)))); }
  /// Throw Error where values nest too deeply, or hold a namespace, a macro or a loop.
  static Value sequence(Sequence::Kind kind, Items items);
  static Value list(Items items) { return sequence(Sequence::Kind::list, std::move(items)); }
  static Value tuple(Items items) { return sequence(Sequence::Kind::tuple, std::move(items)); }
  static Value view(Items items) { return sequence(Sequence::Kind::view, std::move(items)); }
  static Value mapping(Fields fields);
  static Value cursor(Items items);
  static Value strings(const std::vector<std::string>& texts);
  /// What a JSON file holds.
  static Value of(const Node& node);

  template <typename T>
  const T* get() const {
    return std::get_if<T>(&held_);
  }
  bool is_undefined() const { return get<Undefined>() != nullptr; }
  bool is_none() const { return get<None>() != nullptr; }
  const std::string* as_text() const {
    const Text* text = get<Text>();
    return text ? text->get() : nullptr;
  }
  const Sequence* as_sequence() const {
    const auto* sequence = get<std::shared_ptr<const Sequence>>();
    return sequence ? sequence->get() : nullptr;
  }
  const Mapping* as_mapping() const {
    const auto* mapping = get<std::shared_ptr<const Mapping>>();
    return mapping ? mapping->get() : nullptr;
  }
  Space* as_space() const {
    const auto* space = get<std::shared_ptr<Space>>();
    return space ? space->get() : nullptr;
  }

  bool truth() const;
  /// "a string", for messages.
  std::string_view kind() const;

 private:
  Held held_;
};

/// Throws Error where a value may not be held by another: a namespace, a macro or a loop would outlive its scope.
void check_may_be_held(const Value& value);

/// The field of that name, or null.
template <typename Pairs>
auto* find_field(Pairs& fields, std::string_view name) {
  for (auto& [key, value] : fields) {
    if (key == name) return &value;
  }
  return static_cast<decltype(&fields.front().second)>(nullptr);
}

/// As Python's ==, with 1 == 1.0 == True.
bool equal(const Value& left, const Value& right);
/// As Python's <. Throws Error where the two have no order.
bool less(const Value& left, const Value& right);
/// Throws Error where the value changes in Python, so that nothing can be found by it: a list or a mapping.
void check_may_be_key(const Value& value);
/// `needle in haystack`. Throws Error where nothing can be in it.
bool holds(const Value& haystack, const Value& needle);
/// The number that a boolean, an integer or a real is.
bool is_number(const Value& value);
double real_of(const Value& value);
/// Of a boolean or an integer.
const std::int64_t* integer_of(const Value& value, std::int64_t& room);

/// What a walk over the value gives: of a text its characters, of a mapping its keys. A cursor is then at its end.
/// Throws Error where it cannot be walked.
Items walk(const Value& value);
/// len(). Throws Error where there is none.
std::int64_t count_of(const Value& value);

/// str(): what a template prints.
std::string print(const Value& value);
/// repr(): as Python would write it in a program.
std::string notation(const Value& value);

}  // namespace braid::workload::jinja

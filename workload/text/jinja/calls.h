#pragma once

#include <initializer_list>
#include <string_view>

#include "base/error.h"
#include "workload/text/jinja/value.h"

/// What templates call. All throw Error where Python or Jinja would raise.
namespace braid::workload::jinja {

/// What the template itself says against what it is given, by raise_exception.
class Raised : public Error {
 public:
  using Error::Error;
};

/// How much a template may do before it is taken for one without an end.
class Budget {
 public:
  /// Counts a step that makes or walks over so many things.
  void charge(std::size_t things = 1);
  /// Counts so many bytes that were made. Throws Error where the text that they are part of is too long.
  void charge_text(std::size_t bytes) { charge_text(bytes, bytes); }
  void charge_text(std::size_t bytes, std::size_t whole);

 private:
  std::int64_t left_ = 20'000'000;
};

/// What stands in the brackets of a call.
struct Arguments {
  Items values;
  Fields named;

  /// Throws Error where there are more than `names`, fewer than `needed`, or others. An empty name is one that is only
  /// given by its place.
  void expect(std::string_view callee, std::initializer_list<std::string_view> names, std::size_t needed = 0) const;
  /// The one at that place or of that name; null where it is not given.
  const Value* find(std::size_t place, std::string_view name) const;
};

/// Throw Error where the argument is none of these.
const std::string& text_of(const Value& value, std::string_view what);
std::int64_t integer_argument(const Value& value, std::string_view what);

Value apply_filter(std::string_view name, const Value& subject, const Arguments& arguments, Budget& budget);
bool passes_test(std::string_view name, const Value& subject, const Arguments& arguments);
Value call_method(std::string_view name, const Value& subject, const Arguments& arguments, Budget& budget);
Value call_function(std::string_view name, const Arguments& arguments, Budget& budget);

/// value.name: what a value of its kind has of that name, else its item of that name, else undefined.
Value attribute_of(const Value& value, std::string_view name);
/// value[key]: its item, else what a value of its kind has of that name, else undefined.
Value item_of(const Value& value, const Value& key);
/// value[first:last:step], each none where it is left out.
Value slice_of(const Value& value, const Value& first, const Value& last, const Value& step);

/// left OPERATOR right, of + - * / // % **.
Value calculate(std::string_view operation, const Value& left, const Value& right, Budget& budget);

/// json.dumps with the arguments of the filter tojson.
std::string json_text(const Value& value, const Arguments& arguments);

}  // namespace braid::workload::jinja

#include <algorithm>

#include "base/date.h"
#include "base/notice.h"
#include "base/utf8.h"
#include "workload/text/jinja/calls.h"
#include "workload/text/jinja/names.h"

namespace braid::workload::jinja {
namespace {

constexpr std::string_view kFunctions[] = {"range", "namespace", "dict", "raise_exception", "strftime_now"};
constexpr std::int64_t kMostRange = 100'000;  // as Jinja's sandbox has it

Value range_of(const Arguments& arguments, Budget& budget) {
  arguments.expect("range", {"", "", ""}, 1);
  std::int64_t first = 0, last = 0, step = 1;
  const auto at = [&](std::size_t place) { return integer_argument(arguments.values[place], "range"); };
  if (arguments.values.size() == 1) {
    last = at(0);
  } else {
    first = at(0);
    last = at(1);
    if (arguments.values.size() > 2) step = at(2);
  }
  if (step == 0) throw error("the step of a range is 0");
  Items items;
  for (std::int64_t number = first; step > 0 ? number < last : number > last;) {
    if (static_cast<std::int64_t>(items.size()) == kMostRange)
      throw error("a range of more than {} numbers", kMostRange);
    items.push_back(Value::integer(number));
    if (__builtin_add_overflow(number, step, &number)) break;
  }
  budget.charge(items.size());
  return Value::view(std::move(items));
}

Fields fields_of(std::string_view callee, const Arguments& arguments) {
  Fields fields;
  if (arguments.values.size() > 1) throw error("'{}' is given {} arguments", callee, arguments.values.size());
  if (!arguments.values.empty()) {
    if (!arguments.values[0].as_mapping())
      throw error("'{}' of {} is not built in", callee, arguments.values[0].kind());
    fields = arguments.values[0].as_mapping()->fields;
  }
  for (const auto& [name, value] : arguments.named) {
    if (Value* field = find_field(fields, name)) {
      *field = value;
    } else {
      fields.emplace_back(name, value);
    }
  }
  return fields;
}

/// As transformers has it, which gives templates today's date.
Value date_of(const Arguments& arguments) {
  arguments.expect("strftime_now", {"format"}, 1);
  const std::string text = date_text(text_of(*arguments.find(0, "format"), "the form of a date"));
  notice(
      fmt::format("the chat template writes today's date ({}) into conversations, as transformers does; set "
                  "SOURCE_DATE_EPOCH for the same text every day",
                  message_line(text)));
  return Value::text(text);
}

Value namespace_of(const Arguments& arguments) {
  auto space = std::make_shared<Space>(Space{fields_of("namespace", arguments)});
  for (const auto& [name, value] : space->fields) {
    if (name.starts_with('_')) throw error("the field '{}' of a namespace begins with an underscore", name);
    check_may_be_held(value);
  }
  return Value(Value::Held(std::move(space)));
}

}  // namespace

bool is_known_function(std::string_view name) {
  return std::find(std::begin(kFunctions), std::end(kFunctions), name) != std::end(kFunctions);
}

Value call_function(std::string_view name, const Arguments& arguments, Budget& budget) {
  if (name == "range") return range_of(arguments, budget);
  if (name == "namespace") return namespace_of(arguments);
  if (name == "dict") return Value::mapping(fields_of("dict", arguments));
  if (name == "strftime_now") return date_of(arguments);
  arguments.expect("raise_exception", {"message"}, 1);
  throw Raised(print(*arguments.find(0, "message")));
}

}  // namespace braid::workload::jinja

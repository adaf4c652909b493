#include <algorithm>

#include "workload/text/jinja/calls.h"
#include "workload/text/jinja/names.h"
#include "workload/text/jinja/python_text.h"

namespace braid::workload::jinja {
namespace {

using TextFunction = Value (*)(const std::string& text, const Arguments& arguments);

struct TextMethod {
  std::string_view name;
  TextFunction call;
};

template <Ends ends>
Value strip_method(const std::string& text, const Arguments& arguments) {
  arguments.expect("strip", {""});
  const Value* set = arguments.find(0, "");
  if (!set || set->is_none()) return Value::text(std::string(strip(text, ends)));
  return Value::text(std::string(strip(text, ends, text_of(*set, "the characters"))));
}

template <bool from_right>
Value split_method(const std::string& text, const Arguments& arguments) {
  arguments.expect("split", {"sep", "maxsplit"});
  const Value* separator = arguments.find(0, "sep");
  const Value* most = arguments.find(1, "maxsplit");
  std::optional<std::string_view> between;
  if (separator && !separator->is_none()) between = text_of(*separator, "the separator");
  return Value::strings(split(text, between, most ? integer_argument(*most, "split") : -1, from_right));
}

Value splitlines_method(const std::string& text, const Arguments& arguments) {
  arguments.expect("splitlines", {});
  return Value::strings(split_lines(text));
}

template <bool at_end>
Value starts_method(const std::string& text, const Arguments& arguments) {
  arguments.expect(at_end ? "endswith" : "startswith", {""}, 1);
  const auto there = [&](const Value& part) {
    const std::string& wanted = text_of(part, at_end ? "'endswith'" : "'startswith'");
    return at_end ? text.ends_with(wanted) : text.starts_with(wanted);
  };
  const Value& part = arguments.values[0];
  const Sequence* several = part.as_sequence();
  if (!several || several->kind != Sequence::Kind::tuple) return Value::boolean(there(part));
  return Value::boolean(std::any_of(several->items.begin(), several->items.end(), there));
}

Value replace_method(const std::string& text, const Arguments& arguments) {
  arguments.expect("replace", {"", "", "count"}, 2);
  const Value* count = arguments.find(2, "count");
  return Value::text(replace(text, text_of(arguments.values[0], "'replace'"), text_of(arguments.values[1], "'replace'"),
                             count ? integer_argument(*count, "replace") : -1));
}

template <std::string (*change)(std::string_view)>
Value cased_method(const std::string& text, const Arguments& arguments) {
  arguments.expect("the method", {});
  return Value::text(change(text));
}

template <bool from_right>
Value find_method(const std::string& text, const Arguments& arguments) {
  arguments.expect("find", {""}, 1);
  const std::string& part = text_of(arguments.values[0], "'find'");
  const std::size_t place = from_right ? text.rfind(part) : text.find(part);
  return Value::integer(place == std::string::npos ? -1 : length_of(std::string_view(text).substr(0, place)));
}

Value count_method(const std::string& text, const Arguments& arguments) {
  arguments.expect("count", {""}, 1);
  const std::string& part = text_of(arguments.values[0], "'count'");
  return Value::integer(static_cast<std::int64_t>(count_of_parts(text, part)));
}

Value join_method(const std::string& text, const Arguments& arguments) {
  arguments.expect("join", {""}, 1);
  std::string joined;
  bool first = true;
  for (const Value& item : walk(arguments.values[0])) {
    if (!first) joined += text;
    first = false;
    joined += text_of(item, "'join'");
  }
  return Value::text(std::move(joined));
}

Value removeprefix_method(const std::string& text, const Arguments& arguments) {
  arguments.expect("removeprefix", {""}, 1);
  const std::string& part = text_of(arguments.values[0], "'removeprefix'");
  return Value::text(text.starts_with(part) ? text.substr(part.size()) : text);
}

Value removesuffix_method(const std::string& text, const Arguments& arguments) {
  arguments.expect("removesuffix", {""}, 1);
  const std::string& part = text_of(arguments.values[0], "'removesuffix'");
  return Value::text(text.ends_with(part) ? text.substr(0, text.size() - part.size()) : text);
}

constexpr TextMethod kTextMethods[] = {{"strip", strip_method<Ends::both>},
                                       {"lstrip", strip_method<Ends::left>},
                                       {"rstrip", strip_method<Ends::right>},
                                       {"split", split_method<false>},
                                       {"rsplit", split_method<true>},
                                       {"splitlines", splitlines_method},
                                       {"startswith", starts_method<false>},
                                       {"endswith", starts_method<true>},
                                       {"replace", replace_method},
                                       {"upper", cased_method<upper>},
                                       {"lower", cased_method<lower>},
                                       {"title", cased_method<title>},
                                       {"capitalize", cased_method<capitalize>},
                                       {"find", find_method<false>},
                                       {"rfind", find_method<true>},
                                       {"count", count_method},
                                       {"join", join_method},
                                       {"removeprefix", removeprefix_method},
                                       {"removesuffix", removesuffix_method}};

/// What one text becomes may be far longer than it is.
void charge_replacement(std::string_view name, const std::string& text, const Arguments& arguments, Budget& budget) {
  const auto given = [&](std::size_t place) {
    return place < arguments.values.size() ? arguments.values[place].as_text() : nullptr;
  };
  if (name == "replace" && given(0) && given(1))
    budget.charge_text(text.size() + count_of_parts(text, *given(0)) * given(1)->size());
}

constexpr std::string_view kMappingMethods[] = {"get", "items", "keys", "values"};

Value call_mapping_method(std::string_view name, const Mapping& mapping, const Arguments& arguments) {
  if (name == "get") {
    arguments.expect(name, {"", ""}, 1);
    const std::string* key = arguments.values[0].as_text();
    if (const Value* found = key ? mapping.find(*key) : nullptr) return *found;
    return arguments.values.size() > 1 ? arguments.values[1] : Value();
  }
  arguments.expect(name, {});
  Items items;
  for (const auto& [key, value] : mapping.fields) {
    items.push_back(name == "keys"     ? Value::text(key)
                    : name == "values" ? value
                                       : Value::tuple({Value::text(key), value}));
  }
  return Value::view(std::move(items));
}

}  // namespace

bool is_known_method(std::string_view name) {
  return std::any_of(std::begin(kTextMethods), std::end(kTextMethods),
                     [&](const TextMethod& each) { return each.name == name; }) ||
         std::find(std::begin(kMappingMethods), std::end(kMappingMethods), name) != std::end(kMappingMethods);
}

Value call_method(std::string_view name, const Value& subject, const Arguments& arguments, Budget& budget) {
  const bool of_mapping =
      std::find(std::begin(kMappingMethods), std::end(kMappingMethods), name) != std::end(kMappingMethods);
  if (const Mapping* mapping = subject.as_mapping(); mapping && of_mapping) {
    budget.charge(mapping->fields.size());
    return call_mapping_method(name, *mapping, arguments);
  }
  if (const std::string* text = subject.as_text()) {
    const auto* const method = std::find_if(std::begin(kTextMethods), std::end(kTextMethods),
                                            [&](const TextMethod& each) { return each.name == name; });
    if (method != std::end(kTextMethods)) {
      budget.charge_text(text->size());
      charge_replacement(name, *text, arguments, budget);
      Value made = method->call(*text, arguments);
      if (made.as_sequence()) budget.charge(made.as_sequence()->items.size());
      if (made.as_text()) budget.charge_text(made.as_text()->size());
      return made;
    }
  }
  if (const Sequence* sequence = subject.as_sequence(); sequence && name == "count") {
    arguments.expect(name, {""}, 1);
    budget.charge(sequence->items.size());
    return Value::integer(std::count_if(sequence->items.begin(), sequence->items.end(),
                                        [&](const Value& item) { return equal(item, arguments.values[0]); }));
  }
  if (const Undefined* undefined = subject.get<Undefined>()) throw error("{}", *undefined->what);
  throw error("{} has no method '{}'", subject.kind(), name);
}

}  // namespace braid::workload::jinja

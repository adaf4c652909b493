#include <algorithm>
#include <array>

#include "workload/text/jinja/calls.h"
#include "workload/text/jinja/loop.h"
#include "workload/text/jinja/python_text.h"

namespace braid::workload::jinja {
namespace {

constexpr std::array<std::string_view, 11> kOfMappings = {"clear", "copy",    "fromkeys",   "get",    "items", "keys",
                                                          "pop",   "popitem", "setdefault", "update", "values"};
constexpr std::array<std::string_view, 47> kOfTexts = {
    "capitalize",   "casefold",   "center",    "count",       "encode",    "endswith",     "expandtabs",   "find",
    "format",       "format_map", "index",     "isalnum",     "isalpha",   "isascii",      "isdecimal",    "isdigit",
    "isidentifier", "islower",    "isnumeric", "isprintable", "isspace",   "istitle",      "isupper",      "join",
    "ljust",        "lower",      "lstrip",    "maketrans",   "partition", "removeprefix", "removesuffix", "replace",
    "rfind",        "rindex",     "rjust",     "rpartition",  "rsplit",    "rstrip",       "split",        "splitlines",
    "startswith",   "strip",      "swapcase",  "title",       "translate", "upper",        "zfill"};
constexpr std::array<std::string_view, 11> kOfLists = {"append", "clear", "copy",   "count",   "extend", "index",
                                                       "insert", "pop",   "remove", "reverse", "sort"};

constexpr std::array<std::string_view, 13> kOfNumbers = {
    "as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator", "from_bytes", "fromhex", "hex", "imag",
    "is_integer",       "numerator", "real",       "to_bytes"};

template <std::size_t count>
void refuse_method(const Value& value, std::string_view name, const std::array<std::string_view, count>& names) {
  if (std::find(names.begin(), names.end(), name) != names.end())
    throw error("the method '{}' of {} is not called", name, value.kind());
}

/// That the value has no attribute of that name: one that is a method or the like is none that can be given.
void refuse_attribute(const Value& value, std::string_view name) {
  if (value.as_mapping()) return refuse_method(value, name, kOfMappings);
  if (value.as_text()) return refuse_method(value, name, kOfTexts);
  if (const Sequence* sequence = value.as_sequence()) {
    if (sequence->kind == Sequence::Kind::view) throw error("'{}' of {}", name, value.kind());
    return refuse_method(value, name, kOfLists);
  }
  if (is_number(value)) return refuse_method(value, name, kOfNumbers);
  if (!value.is_none() && !value.as_space()) throw error("'{}' of {}", name, value.kind());
}

Value missing(const Value& value, std::string_view name) {
  return Value::undefined(fmt::format("'{}' of {} is not there", name, value.kind()));
}

void refuse_undefined(const Value& value) {
  if (const Undefined* undefined = value.get<Undefined>()) throw error("{}", *undefined->what);
}

const Value* field_of(const Value& value, std::string_view name) {
  if (const Mapping* mapping = value.as_mapping()) return mapping->find(name);
  if (const Space* space = value.as_space()) return find_field(space->fields, name);
  return nullptr;
}

/// Python's place of an index, or past the end where there is none.
std::size_t place_of(std::int64_t index, std::size_t count) {
  const auto size = static_cast<std::int64_t>(count);
  if (index < 0) index += size;
  return index < 0 || index >= size ? count : static_cast<std::size_t>(index);
}

/// The places that a slice takes of `count`, as Python's slice.indices does.
std::vector<std::size_t> places_of(const Value& first, const Value& last, const Value& step, std::int64_t count) {
  const std::int64_t stride = step.is_none() ? 1 : integer_argument(step, "a slice");
  if (stride == 0) throw error("the step of a slice is 0");
  const std::int64_t lowest = stride < 0 ? -1 : 0, highest = stride < 0 ? count - 1 : count;
  const auto bound = [&](const Value& value, std::int64_t otherwise) {
    if (value.is_none()) return otherwise;
    const std::int64_t given = integer_argument(value, "a slice");
    return std::clamp(given < 0 ? std::max(given, -count - 1) + count : given, lowest, highest);
  };
  const std::int64_t begin = bound(first, stride < 0 ? highest : lowest),
                     end = bound(last, stride < 0 ? lowest : highest);
  std::vector<std::size_t> places;
  // Past the first step that leads outside, none leads back; so that nothing overflows, a step is no longer than that.
  const std::int64_t bounded = std::clamp(stride, -count - 1, count + 1);
  for (std::int64_t at = begin; stride < 0 ? at > end : at < end; at += bounded)
    places.push_back(static_cast<std::size_t>(at));
  return places;
}

}  // namespace

Value attribute_of(const Value& value, std::string_view name) {
  refuse_undefined(value);
  if (const Loop* const* loop = value.get<const Loop*>()) return loop_attribute(**loop, name);
  refuse_attribute(value, name);
  const Value* field = field_of(value, name);
  return field ? *field : missing(value, name);
}

Value item_of(const Value& value, const Value& key) {
  refuse_undefined(value);
  refuse_undefined(key);
  if (const std::string* name = key.as_text()) {
    if (const Value* field = field_of(value, *name)) return *field;
    return attribute_of(value, *name);
  }
  std::int64_t index = 0;
  if (!integer_of(key, index)) return missing(value, print(key));
  if (const std::string* text = value.as_text()) {
    const std::vector<std::size_t> begins = code_points(*text);
    const std::size_t place = place_of(index, begins.size() - 1);
    if (place + 1 == begins.size()) return missing(value, print(key));
    return Value::text(text->substr(begins[place], begins[place + 1] - begins[place]));
  }
  if (const Sequence* sequence = value.as_sequence()) {
    if (sequence->kind == Sequence::Kind::view) throw error("an item of {}", value.kind());
    const std::size_t place = place_of(index, sequence->items.size());
    return place < sequence->items.size() ? sequence->items[place] : missing(value, print(key));
  }
  if (value.get<std::shared_ptr<Cursor>>() || value.get<const Loop*>()) throw error("an item of {}", value.kind());
  return missing(value, print(key));
}

Value slice_of(const Value& value, const Value& first, const Value& last, const Value& step) {
  refuse_undefined(value);
  for (const Value* bound : {&first, &last, &step}) refuse_undefined(*bound);
  if (const std::string* text = value.as_text()) {
    const std::vector<std::size_t> begins = code_points(*text);
    std::string part;
    for (const std::size_t place : places_of(first, last, step, static_cast<std::int64_t>(begins.size()) - 1))
      part += text->substr(begins[place], begins[place + 1] - begins[place]);
    return Value::text(std::move(part));
  }
  const Sequence* sequence = value.as_sequence();
  if (!sequence || sequence->kind == Sequence::Kind::view) throw error("a slice of {}", value.kind());
  Items items;
  for (const std::size_t place : places_of(first, last, step, static_cast<std::int64_t>(sequence->items.size())))
    items.push_back(sequence->items[place]);
  return Value::sequence(sequence->kind, std::move(items));
}

}  // namespace braid::workload::jinja

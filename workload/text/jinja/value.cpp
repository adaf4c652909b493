#include "workload/text/jinja/value.h"

#include <algorithm>
#include <charconv>

#include "workload/text/jinja/python_text.h"

namespace braid::workload::jinja {
namespace {

constexpr int kMostValueDepth = 100;  // values are compared, printed and destroyed by recursion

int depth_of(const Value& value) {
  if (const Sequence* sequence = value.as_sequence()) return sequence->depth;
  if (const Mapping* mapping = value.as_mapping()) return mapping->depth;
  return 0;
}

int depth_over(int depth, const Value& value) {
  check_may_be_held(value);
  depth = std::max(depth, 1 + depth_of(value));
  if (depth > kMostValueDepth) throw error("values are nested more than {} deep", kMostValueDepth);
  return depth;
}

Value number_of(const Node& node) {
  const std::string& text = node.text;
  const char* end = text.data() + text.size();
  std::int64_t integer = 0;
  if (const auto read = std::from_chars(text.data(), end, integer); read.ec == std::errc() && read.ptr == end)
    return Value::integer(integer);
  double real = 0;
  const auto read = std::from_chars(text.data(), end, real);
  if (read.ec != std::errc() || read.ptr != end || text.find_first_of(".eE") == std::string::npos)
    throw node.error(fmt::format("{} is too large a number", text), "give a smaller one, or a string");
  return Value::real(real);
}

bool equal_items(const Items& left, const Items& right) {
  return left.size() == right.size() && std::equal(left.begin(), left.end(), right.begin(), equal);
}

bool equal_fields(const Mapping& left, const Mapping& right) {
  return left.fields.size() == right.fields.size() &&
         std::all_of(left.fields.begin(), left.fields.end(), [&](const auto& field) {
           const Value* other = right.find(field.first);
           return other && equal(field.second, *other);
         });
}

std::string joined(const Items& items) {
  std::string text;
  for (const Value& item : items) text += (text.empty() ? "" : ", ") + notation(item);
  return text;
}

}  // namespace

const Value* Mapping::find(std::string_view key) const {
  return find_field(fields, key);
}

void check_may_be_held(const Value& value) {
  if (value.as_space() || value.get<std::shared_ptr<const MacroInScope>>() || value.get<const Loop*>() ||
      value.get<std::shared_ptr<Cursor>>())
    throw error("{} within another value is not built in", value.kind());
}

Value Value::undefined(std::string what) {
  return Value(Held(Undefined{std::make_shared<const std::string>(std::move(what))}));
}

Value Value::sequence(Sequence::Kind kind, Items items) {
  int depth = 1;
  for (const Value& item : items) depth = depth_over(depth, item);
  return Value(Held(std::make_shared<const Sequence>(Sequence{kind, std::move(items), depth})));
}

Value Value::mapping(Fields fields) {
  int depth = 1;
  for (const auto& [key, value] : fields) depth = depth_over(depth, value);
  return Value(Held(std::make_shared<const Mapping>(Mapping{std::move(fields), depth})));
}

Value Value::cursor(Items items) {
  return Value(Held(std::make_shared<Cursor>(Cursor{std::move(items)})));
}

Value Value::strings(const std::vector<std::string>& texts) {
  Items items;
  for (const std::string& each : texts) items.push_back(text(each));
  return list(std::move(items));
}

Value Value::of(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return {};
    case Node::Kind::scalar:
      if (node.quoted) return text(node.text);
      if (node.text == "true" || node.text == "false") return boolean(node.text == "true");
      return number_of(node);
    case Node::Kind::sequence: {
      Items items;
      for (const Node& item : node.items) items.push_back(of(item));
      return list(std::move(items));
    }
    case Node::Kind::map: {
      Fields fields;
      for (const auto& [key, value] : node.fields) fields.emplace_back(key, of(value));
      return mapping(std::move(fields));
    }
  }
  return {};
}

bool Value::truth() const {
  if (is_undefined() || is_none()) return false;
  if (const bool* truth = get<bool>()) return *truth;
  if (const auto* integer = get<std::int64_t>()) return *integer != 0;
  if (const auto* real = get<double>()) return *real != 0;
  if (const std::string* text = as_text()) return !text->empty();
  if (const Sequence* sequence = as_sequence()) return !sequence->items.empty();
  if (const Mapping* mapping = as_mapping()) return !mapping->fields.empty();
  return true;
}

std::string_view Value::kind() const {
  if (const Sequence* sequence = as_sequence()) {
    return sequence->kind == Sequence::Kind::list    ? "a list"
           : sequence->kind == Sequence::Kind::tuple ? "a tuple"
                                                     : "a view";
  }
  static constexpr std::string_view kKinds[] = {"undefined",  "none",    "a boolean", "a number",    "a number",
                                                "a string",   "a list",  "a mapping", "an iterator", "a namespace",
                                                "a function", "a macro", "a loop"};
  return kKinds[held_.index()];
}

bool is_number(const Value& value) {
  return value.get<bool>() || value.get<std::int64_t>() || value.get<double>();
}

double real_of(const Value& value) {
  if (const double* real = value.get<double>()) return *real;
  std::int64_t room = 0;
  return static_cast<double>(*integer_of(value, room));
}

const std::int64_t* integer_of(const Value& value, std::int64_t& room) {
  if (const bool* truth = value.get<bool>()) return room = *truth ? 1 : 0, &room;
  if (const auto* integer = value.get<std::int64_t>()) return room = *integer, &room;
  return nullptr;
}

bool equal(const Value& left, const Value& right) {
  if (is_number(left) && is_number(right)) {
    std::int64_t a = 0, b = 0;
    if (integer_of(left, a) && integer_of(right, b)) return a == b;
    return real_of(left) == real_of(right);
  }
  if (left.as_text() && right.as_text()) return *left.as_text() == *right.as_text();
  if (left.as_mapping() && right.as_mapping()) return equal_fields(*left.as_mapping(), *right.as_mapping());
  const Sequence *a = left.as_sequence(), *b = right.as_sequence();
  if (a && b) return a->kind == b->kind && equal_items(a->items, b->items);
  return (left.is_none() && right.is_none()) || (left.is_undefined() && right.is_undefined()) ||
         (left.as_space() && left.as_space() == right.as_space());
}

bool less(const Value& left, const Value& right) {
  if (is_number(left) && is_number(right)) {
    std::int64_t a = 0, b = 0;
    if (integer_of(left, a) && integer_of(right, b)) return a < b;
    return real_of(left) < real_of(right);
  }
  // The order of UTF-8 is that of code points.
  if (left.as_text() && right.as_text()) return *left.as_text() < *right.as_text();
  const Sequence *a = left.as_sequence(), *b = right.as_sequence();
  if (a && b && a->kind == b->kind && a->kind != Sequence::Kind::view) {
    for (std::size_t i = 0; i < std::min(a->items.size(), b->items.size()); ++i) {
      if (!equal(a->items[i], b->items[i])) return less(a->items[i], b->items[i]);
    }
    return a->items.size() < b->items.size();
  }
  throw error("{} and {} have no order", left.kind(), right.kind());
}

void check_may_be_key(const Value& value) {
  const Sequence* sequence = value.as_sequence();
  if (value.as_mapping() || (sequence && sequence->kind == Sequence::Kind::list))
    throw error("{} is looked for among keys", value.kind());
  if (!sequence) return;
  for (const Value& item : sequence->items) check_may_be_key(item);
}

bool holds(const Value& haystack, const Value& needle) {
  if (const std::string* text = haystack.as_text()) {
    if (!needle.as_text()) throw error("{} is looked for in a string", needle.kind());
    return text->find(*needle.as_text()) != std::string::npos;
  }
  if (const Mapping* mapping = haystack.as_mapping()) {
    check_may_be_key(needle);
    return needle.as_text() && mapping->find(*needle.as_text()) != nullptr;
  }
  if (const Sequence* sequence = haystack.as_sequence())
    return std::any_of(sequence->items.begin(), sequence->items.end(),
                       [&](const Value& item) { return equal(item, needle); });
  if (const auto* cursor = haystack.get<std::shared_ptr<Cursor>>()) {
    Cursor& at = **cursor;
    while (at.at < at.items.size()) {
      if (equal(at.items[at.at++], needle)) return true;
    }
    return false;
  }
  if (haystack.is_undefined()) return false;
  throw error("nothing can be in {}", haystack.kind());
}

Items walk(const Value& value) {
  if (value.is_undefined()) return {};
  if (const Sequence* sequence = value.as_sequence()) return sequence->items;
  Items items;
  if (const Mapping* mapping = value.as_mapping()) {
    for (const auto& [key, field] : mapping->fields) items.push_back(Value::text(key));
    return items;
  }
  if (const std::string* text = value.as_text()) {
    const std::vector<std::size_t> begins = code_points(*text);
    for (std::size_t i = 0; i + 1 < begins.size(); ++i)
      items.push_back(Value::text(text->substr(begins[i], begins[i + 1] - begins[i])));
    return items;
  }
  if (const auto* cursor = value.get<std::shared_ptr<Cursor>>()) {
    Cursor& at = **cursor;
    items.assign(at.items.begin() + static_cast<std::ptrdiff_t>(at.at), at.items.end());
    at.at = at.items.size();
    return items;
  }
  throw error("{} cannot be walked over", value.kind());
}

std::int64_t count_of(const Value& value) {
  if (value.is_undefined()) return 0;
  if (const std::string* text = value.as_text()) return length_of(*text);
  if (const Sequence* sequence = value.as_sequence()) return static_cast<std::int64_t>(sequence->items.size());
  if (const Mapping* mapping = value.as_mapping()) return static_cast<std::int64_t>(mapping->fields.size());
  throw error("{} has no length", value.kind());
}

std::string print(const Value& value) {
  if (value.is_undefined()) return "";
  if (const std::string* text = value.as_text()) return *text;
  return notation(value);
}

std::string notation(const Value& value) {
  if (value.is_undefined()) return "Undefined";
  if (value.is_none()) return "None";
  if (const bool* truth = value.get<bool>()) return *truth ? "True" : "False";
  if (const auto* integer = value.get<std::int64_t>()) return std::to_string(*integer);
  if (const auto* real = value.get<double>()) return number_text(*real);
  if (const std::string* text = value.as_text()) return python_quoted(*text);
  if (const Mapping* mapping = value.as_mapping()) {
    std::string text;
    for (const auto& [key, field] : mapping->fields)
      text += (text.empty() ? "" : ", ") + python_quoted(key) + ": " + notation(field);
    return "{" + text + "}";
  }
  const Sequence* sequence = value.as_sequence();
  if (!sequence || sequence->kind == Sequence::Kind::view) throw error("{} is printed", value.kind());
  const std::string items = joined(sequence->items);
  if (sequence->kind == Sequence::Kind::list) return "[" + items + "]";
  return "(" + items + (sequence->items.size() == 1 ? ",)" : ")");
}

}  // namespace braid::workload::jinja

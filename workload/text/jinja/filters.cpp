#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

#include "workload/text/jinja/calls.h"
#include "workload/text/jinja/names.h"
#include "workload/text/jinja/python_text.h"

namespace braid::workload::jinja {
namespace {

using FilterFunction = Value (*)(const Value& subject, const Arguments& arguments, Budget& budget);

struct Filter {
  std::string_view name;
  FilterFunction apply;
};

Value made_text(std::string text, Budget& budget) {
  budget.charge_text(text.size());
  return Value::text(std::move(text));
}

std::optional<std::string_view> text_or_none(const Value* value, std::string_view what) {
  if (!value || value->is_none()) return std::nullopt;
  return text_of(*value, what);
}

Value trim_filter(const Value& subject, const Arguments& arguments, Budget& budget) {
  arguments.expect("trim", {"chars"});
  const std::string text = print(subject);
  return made_text(std::string(strip(text, Ends::both, text_or_none(arguments.find(0, "chars"), "the characters"))),
                   budget);
}

Value tojson_filter(const Value& subject, const Arguments& arguments, Budget& budget) {
  return made_text(json_text(subject, arguments), budget);
}

Value length_filter(const Value& subject, const Arguments& arguments, Budget&) {
  arguments.expect("length", {});
  return Value::integer(count_of(subject));
}

/// The field that "a.b.0" leads to.
Value field_at(const Value& value, const Value& path) {
  if (!path.as_text()) return item_of(value, path);
  Value at = value;
  for (const std::string& part : split(*path.as_text(), ".", -1)) {
    const bool digits = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos && part.size() < 10;
    at = item_of(at, digits ? Value::integer(std::stoll(part)) : Value::text(part));
  }
  return at;
}

Value join_filter(const Value& subject, const Arguments& arguments, Budget& budget) {
  arguments.expect("join", {"d", "attribute"});
  const Value* between = arguments.find(0, "d");
  const Value* attribute = arguments.find(1, "attribute");
  const std::string separator = between ? print(*between) : "";
  std::string text;
  bool first = true;
  for (const Value& item : walk(subject)) {
    const std::size_t before = text.size();
    if (!first) text += separator;
    first = false;
    text += print(attribute && !attribute->is_none() ? field_at(item, *attribute) : item);
    budget.charge_text(text.size() - before, text.size());
  }
  return Value::text(std::move(text));
}

template <std::string (*change)(std::string_view)>
Value cased(const Value& subject, const Arguments& arguments, Budget& budget) {
  arguments.expect("the filter", {});
  return made_text(change(print(subject)), budget);
}

/// Jinja's own: a word begins behind white space and -({[<, and nowhere else.
std::string words_capitalized(std::string_view text) {
  std::string result = lower(text);
  bool begins = true;
  for (char& letter : result) {
    const bool separates = std::string_view("-({[<").find(letter) != std::string_view::npos ||
                           is_space(static_cast<unsigned char>(letter));
    if (begins && !separates) letter = upper(std::string_view(&letter, 1))[0];
    begins = separates;
  }
  return result;
}

Value list_filter(const Value& subject, const Arguments& arguments, Budget& budget) {
  arguments.expect("list", {});
  Items items = walk(subject);
  budget.charge(items.size());
  return Value::list(std::move(items));
}

Value first_filter(const Value& subject, const Arguments& arguments, Budget& budget) {
  arguments.expect("first", {});
  if (const auto* cursor = subject.get<std::shared_ptr<Cursor>>()) {
    Cursor& at = **cursor;
    return at.at < at.items.size() ? at.items[at.at++] : Value::undefined("there is no first item");
  }
  const Items items = walk(subject);
  budget.charge(items.size());
  return items.empty() ? Value::undefined("there is no first item") : items.front();
}

Value last_filter(const Value& subject, const Arguments& arguments, Budget& budget) {
  arguments.expect("last", {});
  if (subject.get<std::shared_ptr<Cursor>>()) throw error("the last item of {}", subject.kind());
  const Items items = walk(subject);
  budget.charge(items.size());
  return items.empty() ? Value::undefined("there is no last item") : items.back();
}

Value reverse_filter(const Value& subject, const Arguments& arguments, Budget& budget) {
  arguments.expect("reverse", {});
  Items items = walk(subject);
  budget.charge(items.size());
  std::reverse(items.begin(), items.end());
  if (subject.as_text()) {
    std::string text;
    for (const Value& item : items) text += *item.as_text();
    return Value::text(std::move(text));
  }
  return subject.get<std::shared_ptr<Cursor>>() ? Value::list(std::move(items)) : Value::cursor(std::move(items));
}

Value replace_filter(const Value& subject, const Arguments& arguments, Budget& budget) {
  arguments.expect("replace", {"old", "new", "count"}, 2);
  const Value* count = arguments.find(2, "count");
  const std::string text = print(subject), from = print(*arguments.find(0, "old")),
                    to = print(*arguments.find(1, "new"));
  budget.charge_text(text.size() + count_of_parts(text, from) * to.size());
  return Value::text(replace(text, from, to, count && !count->is_none() ? integer_argument(*count, "replace") : -1));
}

Value default_filter(const Value& subject, const Arguments& arguments, Budget&) {
  arguments.expect("default", {"default_value", "boolean"});
  const Value* otherwise = arguments.find(0, "default_value");
  const Value* boolean = arguments.find(1, "boolean");
  if (subject.is_undefined() || (boolean && boolean->truth() && !subject.truth()))
    return otherwise ? *otherwise : Value::text("");
  return subject;
}

Items pairs_of(const Mapping& mapping) {
  Items pairs;
  for (const auto& [key, value] : mapping.fields) pairs.push_back(Value::tuple({Value::text(key), value}));
  return pairs;
}

Value items_filter(const Value& subject, const Arguments& arguments, Budget& budget) {
  arguments.expect("items", {});
  if (subject.is_undefined()) return Value::cursor({});
  if (!subject.as_mapping()) throw error("the items of {}", subject.kind());
  budget.charge(subject.as_mapping()->fields.size());
  return Value::cursor(pairs_of(*subject.as_mapping()));
}

Arguments behind(const Arguments& arguments, std::size_t first) {
  Arguments rest;
  if (first < arguments.values.size())
    rest.values.assign(arguments.values.begin() + static_cast<std::ptrdiff_t>(first), arguments.values.end());
  rest.named = arguments.named;
  return rest;
}

Value map_filter(const Value& subject, const Arguments& arguments, Budget& budget) {
  Items items = walk(subject);
  budget.charge(items.size());
  if (arguments.values.empty()) {
    arguments.expect("map", {"", "attribute", "default"});
    const Value* attribute = arguments.find(1, "attribute");
    const Value* otherwise = arguments.find(2, "default");
    if (!attribute) throw error("'map' lacks an argument");
    for (Value& item : items) {
      item = field_at(item, *attribute);
      if (item.is_undefined() && otherwise && !otherwise->is_none()) item = *otherwise;
    }
    return Value::cursor(std::move(items));
  }
  const std::string& filter = text_of(arguments.values[0], "the filter");
  const Arguments rest = behind(arguments, 1);
  for (Value& item : items) item = apply_filter(filter, item, rest, budget);
  return Value::cursor(std::move(items));
}

/// select, reject, selectattr and rejectattr.
template <bool wanted, bool of_attribute>
Value select_filter(const Value& subject, const Arguments& arguments, Budget& budget) {
  Items kept;
  const std::size_t place = of_attribute ? 1 : 0;
  if (arguments.values.size() < place) throw error("a selection lacks the name of its attribute");
  const Arguments rest = behind(arguments, place + 1);
  for (const Value& item : walk(subject)) {
    budget.charge();
    const Value tested = of_attribute ? field_at(item, arguments.values[0]) : item;
    const bool passes = arguments.values.size() > place
                            ? passes_test(text_of(arguments.values[place], "the test"), tested, rest)
                            : tested.truth();
    if (passes == wanted) kept.push_back(item);
  }
  return Value::cursor(std::move(kept));
}

Value without_case(const Value& value) {
  return value.as_text() ? Value::text(lower(*value.as_text())) : value;
}

void sort_by(Items& items, bool descending, const std::function<Value(const Value&)>& key) {
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : items) keyed.emplace_back(key(item), item);
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return descending ? less(b.first, a.first) : less(a.first, b.first);
  });
  for (std::size_t i = 0; i < items.size(); ++i) items[i] = keyed[i].second;
}

bool is_set(const Value* value) {
  return value && value->truth();
}

Value sort_filter(const Value& subject, const Arguments& arguments, Budget& budget) {
  arguments.expect("sort", {"reverse", "case_sensitive", "attribute"});
  const Value* attribute = arguments.find(2, "attribute");
  const bool by_case = is_set(arguments.find(1, "case_sensitive"));
  if (attribute && attribute->as_text() && attribute->as_text()->find(',') != std::string::npos)
    throw error("sorting by several attributes is not built in");
  Items items = walk(subject);
  for (std::size_t i = 1; i < items.size(); i *= 2) budget.charge(items.size());
  sort_by(items, is_set(arguments.find(0, "reverse")), [&](const Value& item) {
    const Value key = attribute && !attribute->is_none() ? field_at(item, *attribute) : item;
    return by_case ? key : without_case(key);
  });
  return Value::list(std::move(items));
}

Value dictsort_filter(const Value& subject, const Arguments& arguments, Budget& budget) {
  arguments.expect("dictsort", {"case_sensitive", "by", "reverse"});
  const Value* by = arguments.find(1, "by");
  const std::string column = by ? print(*by) : "key";
  if (column != "key" && column != "value") throw error("'dictsort' by '{}'", column);
  if (!subject.as_mapping()) throw error("'dictsort' of {}", subject.kind());
  const bool by_case = is_set(arguments.find(0, "case_sensitive"));
  Items items = pairs_of(*subject.as_mapping());
  for (std::size_t i = 1; i < items.size(); i *= 2) budget.charge(items.size());
  sort_by(items, is_set(arguments.find(2, "reverse")), [&](const Value& pair) {
    const Value& key = pair.as_sequence()->items[column == "key" ? 0 : 1];
    return by_case ? key : without_case(key);
  });
  return Value::list(std::move(items));
}

Value unique_filter(const Value& subject, const Arguments& arguments, Budget& budget) {
  arguments.expect("unique", {"case_sensitive", "attribute"});
  const bool by_case = is_set(arguments.find(0, "case_sensitive"));
  const Value* attribute = arguments.find(1, "attribute");
  Items kept, keys;
  for (const Value& item : walk(subject)) {
    budget.charge(keys.size());
    Value key = attribute && !attribute->is_none() ? field_at(item, *attribute) : item;
    if (!by_case) key = without_case(key);
    check_may_be_key(key);
    if (std::any_of(keys.begin(), keys.end(), [&](const Value& other) { return equal(other, key); })) continue;
    keys.push_back(key);
    kept.push_back(item);
  }
  return Value::cursor(std::move(kept));
}

Value sum_filter(const Value& subject, const Arguments& arguments, Budget& budget) {
  arguments.expect("sum", {"attribute", "start"});
  const Value* attribute = arguments.find(0, "attribute");
  const Value* start = arguments.find(1, "start");
  Value sum = start ? *start : Value::integer(0);
  if (sum.as_text()) throw error("the sum of strings");
  for (const Value& item : walk(subject))
    sum = calculate("+", sum, attribute && !attribute->is_none() ? field_at(item, *attribute) : item, budget);
  return sum;
}

/// Whether Python may read a number with underscores, or of other digits, or one of the names of infinity and nan.
bool may_be_odd_number(std::string_view text) {
  return text.find_first_not_of("0123456789-+.eE_infatyINFATY") == std::string_view::npos ||
         std::any_of(text.begin(), text.end(), [](char byte) { return static_cast<unsigned char>(byte) >= 0x80; });
}

/// What Python's int() or float() reads, less its names of infinity: without underscores, white space at the ends
/// aside.
template <typename Number>
std::optional<Number> number_in(std::string_view text) {
  text = strip(text);
  if (text.starts_with('+') && text.size() > 1 && text[1] != '-') text.remove_prefix(1);
  if (text.find_first_not_of("0123456789-+.eE") != std::string_view::npos) {
    if (may_be_odd_number(text)) throw error("the number '{}' is not built in", text);
    return std::nullopt;
  }
  Number number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec == std::errc::result_out_of_range) throw error("the number '{}' is too large", text);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

Value int_of_real(double real) {
  constexpr double kMost = 9.2e18;
  if (!(std::abs(real) < kMost)) throw error("a number is too large");
  return Value::integer(static_cast<std::int64_t>(real));
}

Value int_filter(const Value& subject, const Arguments& arguments, Budget&) {
  arguments.expect("int", {"default"});
  const Value* otherwise = arguments.find(0, "default");
  std::int64_t room = 0;
  if (const Undefined* undefined = subject.get<Undefined>()) throw error("{}", *undefined->what);
  if (const std::int64_t* integer = integer_of(subject, room)) return Value::integer(*integer);
  if (const double* real = subject.get<double>()) return int_of_real(*real);
  if (const std::string* text = subject.as_text()) {
    if (const auto integer = number_in<std::int64_t>(*text)) return Value::integer(*integer);
    if (const auto real = number_in<double>(*text)) return int_of_real(*real);
  }
  return otherwise ? *otherwise : Value::integer(0);
}

Value float_filter(const Value& subject, const Arguments& arguments, Budget&) {
  arguments.expect("float", {"default"});
  const Value* otherwise = arguments.find(0, "default");
  if (const Undefined* undefined = subject.get<Undefined>()) throw error("{}", *undefined->what);
  if (is_number(subject)) return Value::real(real_of(subject));
  if (const std::string* text = subject.as_text()) {
    if (const auto real = number_in<double>(*text)) return Value::real(*real);
  }
  return otherwise ? *otherwise : Value::real(0);
}

Value abs_filter(const Value& subject, const Arguments& arguments, Budget& budget) {
  arguments.expect("abs", {});
  if (!is_number(subject)) throw error("'abs' of {}", subject.kind());
  return calculate(real_of(subject) < 0 ? "-" : "+", Value::integer(0), subject, budget);
}

Value string_filter(const Value& subject, const Arguments& arguments, Budget& budget) {
  arguments.expect("string", {});
  return subject.as_text() ? subject : made_text(print(subject), budget);
}

Value indent_filter(const Value& subject, const Arguments& arguments, Budget& budget) {
  arguments.expect("indent", {"width", "first", "blank"});
  constexpr std::int64_t kUsual = 4, kMost = 1000;
  const Value* width = arguments.find(0, "width");
  const bool first = is_set(arguments.find(1, "first")), blank = is_set(arguments.find(2, "blank"));
  const std::int64_t blanks = width && !width->as_text() ? integer_argument(*width, "indent") : kUsual;
  if (blanks > kMost) throw error("'indent' by {}", blanks);
  const std::string indentation = width && width->as_text()
                                      ? *width->as_text()
                                      : std::string(static_cast<std::size_t>(std::max<std::int64_t>(blanks, 0)), ' ');
  std::string text = first ? indentation : "";
  bool at_first = true;
  for (const std::string& line : split_lines(text_of(subject, "'indent'") + "\n")) {
    if (!at_first) text += "\n" + (line.empty() && !blank ? "" : indentation);
    at_first = false;
    text += line;
    budget.charge_text(line.size() + indentation.size(), text.size());
  }
  return Value::text(std::move(text));
}

constexpr Filter kFilters[] = {{"trim", trim_filter},
                               {"tojson", tojson_filter},
                               {"length", length_filter},
                               {"count", length_filter},
                               {"join", join_filter},
                               {"upper", cased<upper>},
                               {"lower", cased<lower>},
                               {"title", cased<words_capitalized>},
                               {"capitalize", cased<capitalize>},
                               {"list", list_filter},
                               {"first", first_filter},
                               {"last", last_filter},
                               {"reverse", reverse_filter},
                               {"replace", replace_filter},
                               {"default", default_filter},
                               {"d", default_filter},
                               {"items", items_filter},
                               {"map", map_filter},
                               {"select", select_filter<true, false>},
                               {"reject", select_filter<false, false>},
                               {"selectattr", select_filter<true, true>},
                               {"rejectattr", select_filter<false, true>},
                               {"sort", sort_filter},
                               {"dictsort", dictsort_filter},
                               {"unique", unique_filter},
                               {"sum", sum_filter},
                               {"int", int_filter},
                               {"float", float_filter},
                               {"abs", abs_filter},
                               {"string", string_filter},
                               {"indent", indent_filter}};

}  // namespace

bool is_known_filter(std::string_view name) {
  return std::any_of(std::begin(kFilters), std::end(kFilters), [&](const Filter& each) { return each.name == name; });
}

Value apply_filter(std::string_view name, const Value& subject, const Arguments& arguments, Budget& budget) {
  const auto* const filter =
      std::find_if(std::begin(kFilters), std::end(kFilters), [&](const Filter& each) { return each.name == name; });
  if (filter == std::end(kFilters)) throw error("the filter '{}' is not built in", name);
  return filter->apply(subject, arguments, budget);
}

}  // namespace braid::workload::jinja

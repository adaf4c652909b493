#include "workload/text/jinja/calls.h"

#include <algorithm>

namespace braid::workload::jinja {
namespace {

constexpr std::size_t kMostText = std::size_t{64} << 20U;  // bytes
constexpr std::size_t kBytesOfStep = 64;

}  // namespace

void Budget::charge(std::size_t things) {
  left_ -= 1 + static_cast<std::int64_t>(things);
  if (left_ < 0) throw error("the chat template does far more than any conversation needs");
}

void Budget::charge_text(std::size_t bytes, std::size_t whole) {
  if (whole > kMostText) throw error("the chat template makes a text of more than {} MiB", kMostText >> 20U);
  charge(bytes / kBytesOfStep);
}

void Arguments::expect(std::string_view callee, std::initializer_list<std::string_view> names,
                       std::size_t needed) const {
  if (values.size() > names.size()) throw error("'{}' is given {} arguments", callee, values.size());
  for (const auto& [name, value] : named) {
    const auto* const found = std::find(names.begin(), names.end(), name);
    if (found == names.end() || static_cast<std::size_t>(found - names.begin()) < values.size())
      throw error("'{}' is given an argument '{}'", callee, name);
  }
  for (std::size_t place = values.size(); place < needed; ++place) {
    if (!find(place, *(names.begin() + place))) throw error("'{}' lacks an argument", callee);
  }
}

const Value* Arguments::find(std::size_t place, std::string_view name) const {
  if (place < values.size()) return &values[place];
  return name.empty() ? nullptr : find_field(named, name);
}

const std::string& text_of(const Value& value, std::string_view what) {
  if (const std::string* text = value.as_text()) return *text;
  if (const Undefined* undefined = value.get<Undefined>()) throw error("{}", *undefined->what);
  throw error("{} of {}", what, value.kind());
}

std::int64_t integer_argument(const Value& value, std::string_view what) {
  std::int64_t room = 0;
  if (const std::int64_t* integer = integer_of(value, room)) return *integer;
  throw error("'{}' is given {} where a whole number is wanted", what, value.kind());
}

}  // namespace braid::workload::jinja

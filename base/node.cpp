#include "base/node.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace braid {
namespace {

std::string quote(std::string_view text) {
  return fmt::format("'{}'", text);
}

std::string range_remedy(std::string_view what, const std::string& kind, const std::string& least,
                         const std::string& most) {
  if (!least.empty() && !most.empty()) return fmt::format("give {} in {}..{}", kind, least, most);
  if (!least.empty()) return fmt::format("give {} >= {}", what, least);
  if (!most.empty()) return fmt::format("give {} <= {}", what, most);
  return fmt::format("give {}", kind);
}

std::string describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return "empty";
    case Node::Kind::sequence:
      return "a list";
    case Node::Kind::map:
      return "a map";
    case Node::Kind::scalar:
      break;
  }
  return quote(node.text);
}

}  // namespace

Error Node::error(const std::string& what, const std::string& remedy) const {
  return error_at(file ? *file : "?", line, what, remedy);
}

const Node* Node::find(std::string_view key) const {
  if (is_null()) return nullptr;
  if (!is_map())
    throw error(fmt::format("{} stands where keys are expected", describe(*this)),
                fmt::format("give a map with '{}'", key));
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const auto& field) { return field.first == key; });
  return found == fields.end() ? nullptr : &found->second;
}

const Node& Node::at(std::string_view key) const {
  if (const Node* found = find(key)) return *found;
  throw error(fmt::format("'{}' is missing", key), fmt::format("add '{}'", key));
}

void Node::allow_only(std::initializer_list<std::string_view> known) const {
  if (is_null()) return;
  if (!is_map())
    throw error(fmt::format("{} stands where keys are expected", describe(*this)),
                fmt::format("valid keys: {}", fmt::join(known, ", ")));
  for (const auto& [key, value] : fields) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      throw value.error(fmt::format("unknown key '{}'", key), fmt::format("valid keys: {}", fmt::join(known, ", ")));
    }
  }
}

const std::vector<Node>& Node::sequence(std::string_view what) const {
  if (!is_sequence()) throw error(fmt::format("'{}' is {}", what, describe(*this)), "give a list");
  return items;
}

std::string Node::as_string(std::string_view what) const {
  if (!is_scalar()) throw error(fmt::format("'{}' is {}", what, describe(*this)), "give a string");
  return text;
}

bool Node::as_bool(std::string_view what) const {
  if (is_scalar() && !quoted) {
    if (text == "true" || text == "True") return true;
    if (text == "false" || text == "False") return false;
  }
  throw error(fmt::format("'{}' is {}", what, describe(*this)), "give true or false");
}

std::int64_t Node::as_integer(std::string_view what, std::int64_t least, std::int64_t most) const {
  std::int64_t value = 0;
  bool good = is_scalar() && !quoted;
  if (good) {
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    good = code == std::errc() && end == text.data() + text.size();
  }
  if (!good || value < least || value > most) {
    const auto bound = [](std::int64_t limit, std::int64_t none) { return limit == none ? "" : std::to_string(limit); };
    throw error(fmt::format("'{}' is {}", what, describe(*this)),
                range_remedy(what, "a whole number", bound(least, std::numeric_limits<std::int64_t>::min()),
                             bound(most, std::numeric_limits<std::int64_t>::max())) +
                    (quoted ? ", without quotes" : ""));
  }
  return value;
}

double Node::as_number(std::string_view what, double least, double most) const {
  double value = 0;
  bool good = is_scalar() && !quoted;
  if (good) {
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    good = code == std::errc() && end == text.data() + text.size() && std::isfinite(value);
  }
  if (!good || value < least || value > most) {
    const auto bound = [](double limit) { return std::isinf(limit) ? "" : fmt::format("{}", limit); };
    throw error(fmt::format("'{}' is {}", what, describe(*this)),
                range_remedy(what, "a number", bound(least), bound(most)) + (quoted ? ", without quotes" : ""));
  }
  return value;
}

std::string Node::string_or(std::string_view key, std::string otherwise) const {
  const Node* found = find(key);
  return found && !found->is_null() ? found->as_string(key) : otherwise;
}

bool Node::bool_or(std::string_view key, bool otherwise) const {
  const Node* found = find(key);
  return found && !found->is_null() ? found->as_bool(key) : otherwise;
}

std::int64_t Node::integer_or(std::string_view key, std::int64_t otherwise, std::int64_t least,
                              std::int64_t most) const {
  const Node* found = find(key);
  return found && !found->is_null() ? found->as_integer(key, least, most) : otherwise;
}

double Node::number_or(std::string_view key, double otherwise, double least, double most) const {
  const Node* found = find(key);
  return found && !found->is_null() ? found->as_number(key, least, most) : otherwise;
}

}  // namespace braid

#include "workload/sweep.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace braid::workload {
namespace {

constexpr std::array<std::string_view, 4> kSections = {"adapter", "optimizer", "objective", "evaluation"};
/// Which are told what they may be, or are of all tasks of the sweep.
constexpr std::array<std::string_view, 3> kNotSwept = {"name", "dataset", "search"};
constexpr std::array<std::string_view, 2> kLists = {"target_modules", "feedforward_modules"};

template <typename Names>
bool contains(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_swept(const std::string& key, const Node& value) {
  if (!value.is_sequence()) return false;
  if (!contains(kLists, key)) return true;
  return !value.items.empty() && value.items.front().is_sequence();
}

/// What a folder's name may hold.
std::string as_name(const Node& value) {
  std::string text;
  if (value.is_sequence()) {
    for (const Node& item : value.items) text += (text.empty() ? "" : "+") + as_name(item);
  } else {
    text = value.is_scalar() ? value.text : "none";
  }
  for (char& c : text) {
    const bool good =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    if (!good) c = '_';
  }
  return text;
}

/// The first list of values there, or null; `key` is its name.
Node* first_swept(Node& section, bool whole_task, std::string& key) {
  for (auto& [name, value] : section.fields) {
    key = name;
    if (whole_task && contains(kSections, name)) {
      if (!value.is_map()) continue;
      if (Node* found = first_swept(value, false, key)) return found;
      continue;
    }
    if (whole_task && contains(kNotSwept, name)) continue;
    if (is_swept(name, value)) return &value;
  }
  return nullptr;
}

/// The search of a sweep's tasks has the sweep's name, where it has none of its own.
void name_search(Node& task) {
  const Node* name = task.find("name");
  for (auto& [key, section] : task.fields)
    if (key == "search" && section.is_map() && !section.find("name") && name)
      section.fields.emplace_back("name", *name);
}

}  // namespace

std::vector<Node> expand_sweep(const Node& task) {
  if (!task.is_map()) return {task};
  Node named = task;
  name_search(named);
  std::vector<Node> expanded = {named};
  std::string key;
  for (Node probe = named; Node* swept = first_swept(probe, true, key);) {
    if (swept->items.empty())
      throw swept->error(fmt::format("'{}' is an empty list", key), "give a value, or a list of values to try");
    if (expanded.size() * swept->items.size() > kMostSwept)
      throw task.error(fmt::format("the lists make more than {} tasks", kMostSwept), "try fewer values");
    std::vector<Node> longer;
    for (const Node& one : expanded) {
      for (const Node& value : swept->items) {
        Node& next = longer.emplace_back(one);
        std::string same;
        *first_swept(next, true, same) = value;
        for (auto& [name, field] : next.fields)
          if (name == "name" && field.is_scalar())
            field.text += "-" + key + (key.size() > 2 ? "_" : "") + as_name(value);
      }
    }
    expanded = std::move(longer);
    *swept = swept->items.front();
  }
  return expanded;
}

}  // namespace braid::workload

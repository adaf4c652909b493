#include "workload/text/text_steps.h"

#include <algorithm>

namespace braid::workload {

std::vector<ByteRange> find_string(std::string_view text, std::string_view wanted) {
  std::vector<ByteRange> found;
  for (std::size_t at = text.find(wanted); at != std::string_view::npos; at = text.find(wanted, at + wanted.size()))
    found.push_back({at, at + wanted.size()});
  return found;
}

Error not_built_in(const Node& node, const std::string& what) {
  return node.error(what + " is not built in", "give input_ids, which scripts/pretokenize.py makes");
}

void refuse_other_keys(const Node& node, std::string_view what, std::initializer_list<std::string_view> known) {
  if (!node.is_map()) throw not_built_in(node, fmt::format("{} that is no object", what));
  for (const auto& [key, value] : node.fields) {
    const bool is_known = std::find(known.begin(), known.end(), key) != known.end();
    const bool unset = value.is_null() || (value.is_scalar() && (value.text.empty() || value.text == "false"));
    if (!is_known && !unset) throw not_built_in(value, fmt::format("'{}' of {}", key, what));
  }
}

}  // namespace braid::workload

#include "planner/plan/policy.h"

#include <algorithm>

#include "base/error.h"

namespace braid::planner {

std::string spelled(const PolicyChoice& choice) {
  std::string text(choice.policy->name());
  const std::vector<PolicyOption> options = choice.policy->options();
  for (std::size_t i = 0; i < options.size(); ++i) {
    const auto& [name, value] = choice.options[i];
    if (value != options[i].values.front()) text += fmt::format(":{}={}", name, value);
  }
  return text;
}

const std::string& value_of(const OptionValues& options, std::string_view name) {
  const auto found =
      std::find_if(options.begin(), options.end(), [&](const auto& option) { return option.first == name; });
  BRAID_CHECK(found != options.end(), "option {} was not resolved", name);
  return found->second;
}

}  // namespace braid::planner

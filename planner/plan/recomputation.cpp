#include "planner/plan/recomputation.h"

#include <algorithm>

namespace braid::planner {

using costmodel::RecomputeKind;

PolicyOption recompute_option(bool of_layers) {
  if (of_layers) return {kRecomputeOption, {"auto", "none", "selective", "full"}};
  return {kRecomputeOption, {"auto", "none", "full"}};
}

RecomputeChoice recompute_choice(const PolicyChoice& choice, const costmodel::Profile& profile) {
  const std::string& value = value_of(choice.options, kRecomputeOption);
  if (value != "auto") return {{costmodel::recompute_kind_of(value)}, false};
  if (profile.recomputes) return {{RecomputeKind::full}, false};
  const std::vector<PolicyOption> options = choice.policy->options();
  const bool of_layers = std::any_of(options.begin(), options.end(), [](const PolicyOption& option) {
    return option.name == kRecomputeOption &&
           std::find(option.values.begin(), option.values.end(), "selective") != option.values.end();
  });
  if (!of_layers) return {{RecomputeKind::none, RecomputeKind::full}, false};
  return {{RecomputeKind::none, RecomputeKind::selective, RecomputeKind::full}, true};
}

}  // namespace braid::planner

#pragma once

#include <vector>

#include "planner/plan/policy.h"

namespace braid::planner {

/// What a policy's system may compute again to save memory: `of_layers` as many layers of each stage as memory asks
/// for, as Megatron-LM does; else all layers or none, as Hugging Face's gradient checkpointing does. "auto" recomputes
/// where a plan does not fit memory without.
inline constexpr std::string_view kRecomputeOption = "recompute";
PolicyOption recompute_option(bool of_layers);

/// The option as it is given.
struct RecomputeChoice {
  /// Tried in this order until a plan fits; never empty. One alone is what every plan does, of all layers.
  std::vector<costmodel::RecomputeKind> kinds;
  bool of_layers = false;  ///< of as few layers of each stage as fit

  /// What plans do before anything else is tried.
  costmodel::RecomputeKind first() const { return kinds.front(); }
  bool searches() const { return kinds.size() > 1; }
};
RecomputeChoice recompute_choice(const PolicyChoice& choice, const costmodel::Profile& profile);

}  // namespace braid::planner

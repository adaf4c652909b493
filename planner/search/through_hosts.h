#pragma once

#include <optional>
#include <string_view>

#include "costmodel/profile/cost_model.h"
#include "planner/plan/policy.h"

namespace braid::planner {

/// The GPUs of a profile with all of their links through the hosts' memory; between nodes the network comes after that.
/// Throws Error for CPUs.
costmodel::CostModel through_hosts(const costmodel::CostModel& cost, std::string_view policy);

/// What work costs a policy whose messages go through the hosts; nothing where they go over the links.
std::optional<costmodel::CostModel> staged_cost(const costmodel::CostModel& cost, const PolicyChoice& choice);

}  // namespace braid::planner

#pragma once

#include <string_view>

#include "costmodel/cost_model.h"

namespace braid::planner {

/// The GPUs of a profile with all of their links through the hosts' memory; between nodes the network comes after that.
/// Throws Error for CPUs.
costmodel::CostModel through_hosts(const costmodel::CostModel& cost, std::string_view policy);

}  // namespace braid::planner

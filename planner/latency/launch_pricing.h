#pragma once

#include <functional>
#include <span>

#include "base/units.h"
#include "costmodel/profile/cost_model.h"

namespace braid::planner {

/// What one launch costs: a call alone, or several beside one another by MuxTune's Eq. 3.
using LaunchPricing = std::function<Nanoseconds(std::span<const costmodel::OperatorCall>)>;

/// Time on the device as `cost` tells it, which is copied. What the host needs to start kernels is left out: it runs
/// ahead, and whether it holds up a whole pass is no matter of one launch.
LaunchPricing device_pricing(const costmodel::CostModel& cost);

/// The same where collectives are among those ranks, which say which links they take. `cost` must outlive the result.
LaunchPricing on_ranks(LaunchPricing pricing, const costmodel::CostModel& cost, std::span<const std::int32_t> ranks);

}  // namespace braid::planner

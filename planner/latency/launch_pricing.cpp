#include "planner/latency/launch_pricing.h"

#include <memory>
#include <utility>
#include <vector>

namespace braid::planner {

LaunchPricing device_pricing(const costmodel::CostModel& cost) {
  costmodel::Profile profile = cost.profile();
  std::erase_if(profile.entries, [](const auto& entry) { return entry.op == costmodel::Operator::launch; });
  profile.launch_seconds = 0;
  const auto device = std::make_shared<const costmodel::CostModel>(std::move(profile));
  return [device](std::span<const costmodel::OperatorCall> calls) {
    return nanoseconds(calls.size() == 1 ? device->estimate(calls.front()).seconds : device->estimate(calls).seconds);
  };
}

LaunchPricing on_ranks(LaunchPricing pricing, const costmodel::CostModel& cost, std::span<const std::int32_t> ranks) {
  return [pricing = std::move(pricing), &cost,
          ranks = std::vector(ranks.begin(), ranks.end())](std::span<const costmodel::OperatorCall> calls) {
    if (!costmodel::is_collective(calls.front().op)) return pricing(calls);
    costmodel::OperatorCall call = calls.front();
    call.shape = cost.group_shape(call.op, ranks);
    return pricing({&call, 1});
  };
}

}  // namespace braid::planner

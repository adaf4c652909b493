#include "planner/latency/launch_pricing.h"

#include <memory>

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

}  // namespace braid::planner

#include "planner/search/through_hosts.h"

#include "base/error.h"
#include "planner/policies/common_options.h"

namespace braid::planner {

costmodel::CostModel through_hosts(const costmodel::CostModel& cost, std::string_view policy) {
  costmodel::Profile profile = cost.profile();
  if (profile.device.empty())
    throw error("policy {}: transport=hosts is between GPUs, and these ranks are CPUs; leave it out", policy);
  const costmodel::Link staged = costmodel::named_link("cpu-staged", costmodel::device_of(profile.device));
  costmodel::Link& network = profile.interconnect.inter_node;
  if (network.bandwidth_bytes_per_second > 0) {
    const double wire = network.bandwidth_bytes_per_second, copies = staged.bandwidth_bytes_per_second;
    const double latency = staged.latency_seconds + network.latency_seconds;
    network = {staged.name, 1 / (1 / wire + 1 / copies), latency};
  }
  profile.interconnect.intra_node = staged;
  return costmodel::CostModel(std::move(profile));
}

std::optional<costmodel::CostModel> staged_cost(const costmodel::CostModel& cost, const PolicyChoice& choice) {
  if (!stages_through_hosts(choice.options)) return std::nullopt;
  return through_hosts(cost, choice.policy->name());
}

}  // namespace braid::planner

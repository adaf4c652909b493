#pragma once

#include <functional>
#include <optional>

#include "costmodel/gpu/device.h"
#include "workload/cluster.h"

namespace braid::planner {

/// One node gets more GPUs up to so many; then nodes are added, up to kMostNodes or twice what there are.
inline constexpr std::int64_t kGpusOfNode = 8;
inline constexpr std::int64_t kMostNodes = 8;

/// The cluster with the fewest GPUs more on which it fits: with one step less it does not. Nothing where the largest
/// that is looked at is too small. A link that the cluster did not need is taken to be a common one.
std::optional<workload::Cluster> smallest_that_fits(const workload::Cluster& cluster, const costmodel::Device& device,
                                                    const std::function<bool(const workload::Cluster&)>& fits);

}  // namespace braid::planner

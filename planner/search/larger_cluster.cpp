#include "planner/search/larger_cluster.h"

#include <algorithm>
#include <vector>

namespace braid::planner {
namespace {

using workload::Cluster;

/// Ascending by GPUs.
std::vector<Cluster> larger_clusters(Cluster cluster, const costmodel::Device& device) {
  if (cluster.intra_node.bandwidth_bytes_per_second <= 0) cluster.intra_node = costmodel::named_link("pcie4", device);
  if (cluster.inter_node.bandwidth_bytes_per_second <= 0) cluster.inter_node = costmodel::named_link("ib-100g", device);
  const std::int64_t most_nodes = std::max(kMostNodes, 2 * cluster.nodes);
  std::vector<Cluster> larger;
  while (cluster.nodes == 1 && cluster.gpus_per_node < kGpusOfNode) {
    ++cluster.gpus_per_node;
    larger.push_back(cluster);
  }
  while (cluster.nodes < most_nodes) {
    ++cluster.nodes;
    larger.push_back(cluster);
  }
  return larger;
}

}  // namespace

std::optional<Cluster> smallest_that_fits(const Cluster& cluster, const costmodel::Device& device,
                                          const std::function<bool(const Cluster&)>& fits) {
  const std::vector<Cluster> larger = larger_clusters(cluster, device);
  // In steps that double, for the larger a cluster the longer the search; then by halves.
  auto small = larger.begin(), enough = small;
  for (std::ptrdiff_t step = 1; !fits(*enough); step *= 2) {
    small = std::next(enough);
    if (small == larger.end()) return std::nullopt;
    enough = std::prev(larger.end() - small > step ? small + step : larger.end());
  }
  return *std::partition_point(small, enough, [&](const Cluster& smaller) { return !fits(smaller); });
}

}  // namespace braid::planner

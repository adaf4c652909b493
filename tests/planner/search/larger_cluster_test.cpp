#include "planner/search/larger_cluster.h"

#include <gtest/gtest.h>

namespace braid::planner {
namespace {

using workload::Cluster;

const costmodel::Device& h100() {
  return costmodel::device_of("h100");
}

Cluster small_cluster(std::int64_t nodes, std::int64_t gpus_per_node) {
  Cluster cluster;
  cluster.gpu = "h100";
  cluster.nodes = nodes;
  cluster.gpus_per_node = gpus_per_node;
  return cluster;
}

TEST(LargerCluster, IsTheFirstThatFitsOfTheNodeAndThenOfMoreNodes) {
  for (const auto& [nodes, gpus] : {std::pair{1, 1}, {1, 3}, {1, 8}, {2, 4}, {6, 8}}) {
    const Cluster from = small_cluster(nodes, gpus);
    const std::int64_t most = (nodes == 1 ? kGpusOfNode : gpus) * std::max(kMostNodes, 2 * from.nodes);
    std::int64_t before = from.gpus();
    for (std::int64_t needed = from.gpus() + 1; needed <= most; ++needed) {
      const auto found = smallest_that_fits(from, h100(), [&](const Cluster& any) { return any.gpus() >= needed; });
      ASSERT_TRUE(found) << needed;
      EXPECT_GE(found->gpus(), needed);
      EXPECT_LT(found->gpus() - needed, found->nodes == 1 ? 1 : found->gpus_per_node);
      EXPECT_GE(found->gpus(), before);
      before = found->gpus();
      EXPECT_GT(found->intra_node.bandwidth_bytes_per_second, 0);
    }
  }
}

TEST(LargerCluster, IsNoneWhereTheLargestIsTooSmall) {
  const auto never = [](const Cluster&) { return false; };
  EXPECT_FALSE(smallest_that_fits(small_cluster(1, 1), h100(), never));
  EXPECT_FALSE(smallest_that_fits(small_cluster(20, 8), h100(), never));
}

}  // namespace
}  // namespace braid::planner

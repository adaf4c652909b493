#include "planner/plan/deployment.h"

#include <set>

#include <gtest/gtest.h>

#include "support.h"

namespace braid::planner {
namespace {

workload::Workload llama_7b() {
  workload::Workload workload;
  workload.backbone = costmodel::builtin_backbone("llama2-7b");
  return workload;
}

workload::Cluster cluster_of(std::int64_t nodes, std::int64_t gpus_per_node) {
  workload::Cluster cluster;
  cluster.gpu = "a40";
  cluster.nodes = nodes;
  cluster.gpus_per_node = gpus_per_node;
  return cluster;
}

constexpr Parallelism kEveryWay = {true, true, true};

TEST(Deployments, UseEveryRankEveryLayerAndKeepShardsWithinANode) {
  for (const std::int64_t nodes : {1, 2, 8}) {
    for (const std::int64_t gpus : {1, 2, 4, 8}) {
      std::set<std::string> seen;
      for (const auto& deployment : deployments(llama_7b(), cluster_of(nodes, gpus), {}, kEveryWay)) {
        EXPECT_TRUE(seen.insert(describe(deployment)).second) << describe(deployment);
        std::int64_t ranks = 0;
        for (const ReplicaShape& replica : deployment) {
          ranks += replica.tp * replica.stages();
          EXPECT_EQ(gpus % replica.tp, 0);
          EXPECT_EQ(replica.layers.front().first, 0);
          EXPECT_EQ(replica.layers.back().last, 32);
          for (std::size_t s = 1; s < replica.layers.size(); ++s) {
            EXPECT_EQ(replica.layers[s].first, replica.layers[s - 1].last);
            EXPECT_LE(replica.layers[s].count(), replica.layers[s - 1].count());
          }
        }
        EXPECT_EQ(ranks, nodes * gpus);
      }
      // Every way to write the ranks as tp x pp x replicas with tp a power of two within a node, pp within the layers.
      std::size_t expected = 0;
      for (std::int64_t tp = 1; tp <= gpus; tp *= 2) {
        for (std::int64_t pp = 1; pp <= 32; ++pp) expected += nodes * gpus % (tp * pp) == 0;
      }
      EXPECT_EQ(seen.size(), expected);
    }
  }
}

TEST(Deployments, OfStagesAloneMayLeaveGpusIdleButNoCpuRank) {
  const auto found = deployments(llama_7b(), cluster_of(8, 8), {}, {.pipeline = true});
  std::vector<std::int64_t> stages;
  for (const auto& deployment : found) {
    EXPECT_EQ(deployment.size(), 1U);
    stages.push_back(deployment[0].stages());
  }
  EXPECT_EQ(stages, (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32}));
  workload::Cluster ranks = cluster_of(1, 4);
  ranks.gpu = "cpu";
  const auto on_cpus = deployments(llama_7b(), ranks, {}, {.pipeline = true});
  ASSERT_EQ(on_cpus.size(), 1U);
  EXPECT_EQ(describe(on_cpus[0]), "tp 1, pp 4");
}

TEST(Deployments, KeepToWhatIsFixed) {
  const auto found = deployments(llama_7b(), cluster_of(2, 4), {.tp = 2, .pp = 2, .microbatches = {}}, kEveryWay);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(describe(found[0]), "tp 2, pp 2, 2 replicas");
}

TEST(Deployments, SplitLayersAsGiven) {
  const LayerSplit split = layer_split_of("9,9,8,6");
  const auto found =
      deployments(llama_7b(), cluster_of(2, 4), {.tp = {}, .pp = {}, .microbatches = {}, .split = split}, kEveryWay);
  ASSERT_EQ(found.size(), 2U);  // four stages of one and of two shards on eight GPUs
  EXPECT_EQ(describe(found[0]), "tp 1, pp 4 of 9, 9, 8, 6 layers, 2 replicas");
  EXPECT_EQ(describe(found[1]), "tp 2, pp 4 of 9, 9, 8, 6 layers");
  for (const auto& deployment : found) {
    for (const ReplicaShape& replica : deployment)
      EXPECT_EQ(replica.layers, (std::vector<LayerRange>{{0, 9}, {9, 18}, {18, 26}, {26, 32}}));
  }
}

TEST(Deployments, ASplitFixesTheStages) {
  EXPECT_EQ(fixed_stages({.tp = {}, .pp = {}, .microbatches = {}, .split = layer_split_of("3,1")}), 2);
  EXPECT_EQ(fixed_stages({.tp = {}, .pp = 4, .microbatches = {}, .split = layer_split_of("balanced")}), 4);
  EXPECT_EQ(fixed_stages({}), std::nullopt);
}

TEST(Deployments, SplitsAreReadOrRefused) {
  EXPECT_EQ(layer_split_of("even").kind, LayerSplit::Kind::even);
  EXPECT_EQ(layer_split_of("balanced").kind, LayerSplit::Kind::balanced);
  EXPECT_EQ(layer_split_of("32").layers, std::vector<std::int64_t>{32});
  for (const char* text : {"", ",", "8,", ",8", "8,,8", "8 8", "8,x", "0,32", "-1,33", "99999999999999999999", "Even"})
    expect_error([&] { layer_split_of(text); }, "is not usable; give 'even', 'balanced' or the layers of each stage");
}

TEST(Deployments, ShardsAreOfWholeHeads) {
  workload::Workload workload = llama_7b();
  for (const std::int64_t heads : {12, 32, 40, 56}) {
    for (const std::int64_t kv_heads : {1, 2, 4, 8}) {
      if (heads % kv_heads != 0) continue;
      workload.backbone.heads = heads, workload.backbone.kv_heads = kv_heads;
      for (std::int64_t gpus = 1; gpus <= 16; ++gpus) {
        // What Megatron's constructor refuses.
        const auto refused = [&](std::int64_t tp) {
          return heads % tp != 0 || (kv_heads % tp != 0 && tp % kv_heads != 0);
        };
        for (const auto& deployment : deployments(workload, cluster_of(1, gpus), {}, kEveryWay))
          EXPECT_FALSE(refused(deployment.front().tp)) << heads << " " << kv_heads << " " << describe(deployment);
        for (std::int64_t tp = 1; tp <= std::min(gpus, heads); ++tp) {
          EXPECT_EQ(splits_heads(workload.backbone, tp), !refused(tp));
          const Overrides asked{.tp = tp, .pp = {}, .microbatches = {}};
          if (!refused(tp)) {
            EXPECT_EQ(deployments(workload, cluster_of(1, gpus), asked, kEveryWay).front().front().tp, tp);
          } else {
            expect_error([&] { deployments(workload, cluster_of(1, gpus), asked, kEveryWay); },
                         fmt::format("--tp {} does not split the {} attention heads", tp, heads), "give one of: 1");
          }
        }
      }
    }
  }
}

TEST(Deployments, RefuseWhatThereIsNot) {
  const auto planned = [](Overrides overrides, Parallelism parallelism) {
    return [=] { deployments(llama_7b(), cluster_of(1, 4), overrides, parallelism); };
  };
  expect_error(planned({.tp = 8, .pp = {}, .microbatches = {}}, kEveryWay),
               "--tp 8 needs 8 ranks and the cluster has 4");
  expect_error(planned({.tp = 64, .pp = {}, .microbatches = {}}, kEveryWay), "more than the 32 heads");
  expect_error(planned({.tp = 2, .pp = {}, .microbatches = {}}, {.pipeline = true}), "no tensor parallelism");
  expect_error(planned({.tp = {}, .pp = 2, .microbatches = {}}, {.data = true}), "no stages");
  expect_error(planned({.tp = 2, .pp = 4, .microbatches = {}}, kEveryWay),
               "4 stages need 8 ranks and the cluster has 4");
  expect_error(planned({.tp = {}, .pp = 33, .microbatches = {}}, kEveryWay), "more than the 32 layers");
  const auto split = [&](const char* layers, std::optional<std::int64_t> pp, Parallelism parallelism) {
    return planned({.tp = {}, .pp = pp, .microbatches = {}, .split = layer_split_of(layers)}, parallelism);
  };
  expect_error(split("8,8,8,9", {}, kEveryWay), "--layers 8,8,8,9: these are 33 layers, and llama2-7b has 32");
  expect_error(split("16,16", 4, kEveryWay), "--layers 16,16 is for 2 stages, and --pp asks for 4; leave one");
  expect_error(split("8,8,8,4,4", {}, kEveryWay),
               "5 stages need 5 ranks and the cluster has 4; give --layers for fewer stages or --ranks 5");
  expect_error(split("30,2", {}, {.data = true}), "--layers 30,2: this policy has no stages; leave it out");
  expect_error(split("9223372036854775807,9223372036854775807,34", {}, kEveryWay),
               "a stage of 9223372036854775807 layers, and llama2-7b has 32; give as many in all");
}

}  // namespace
}  // namespace braid::planner

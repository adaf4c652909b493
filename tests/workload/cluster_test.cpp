#include "workload/cluster.h"

#include <gtest/gtest.h>

#include "costmodel/profile/profile.h"
#include "workload/texts.h"

namespace braid::workload {
namespace {

class ClusterFile : public testing::Test {
 protected:
  Cluster read(const std::string& text) { return read_cluster(folder.write("cluster.yaml", text)); }

  std::string complaint(const std::string& text) {
    const std::string message = error_of([&] { read(text); });
    const std::string prefix = folder.path().string() + "/";
    return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
  }

  TestFolder folder;
};

TEST_F(ClusterFile, NamedLinksHaveTheirDatasheetSpeeds) {
  const Cluster cluster = read("gpu: a40\nnodes: 8\ngpus_per_node: 2\nintra_node: nvlink\ninter_node: ib-100g\n");
  EXPECT_EQ(cluster.gpu, "a40");
  EXPECT_EQ(cluster.nodes, 8);
  EXPECT_EQ(cluster.gpus_per_node, 2);
  EXPECT_EQ(cluster.gpus(), 16);
  EXPECT_EQ(cluster.intra_node.name, "nvlink");
  EXPECT_EQ(cluster.intra_node.bandwidth_bytes_per_second, 56.25e9);
  EXPECT_GT(cluster.intra_node.latency_seconds, 0);
  EXPECT_EQ(cluster.inter_node.bandwidth_bytes_per_second, 12.5e9);
  const auto intra = [&](const std::string& gpu, const std::string& link) {
    return read("gpu: " + gpu + "\ngpus_per_node: 8\nintra_node: " + link + "\n").intra_node.bandwidth_bytes_per_second;
  };
  EXPECT_EQ(intra("a100-80", "nvswitch"), 300e9);
  EXPECT_EQ(intra("h100", "nvswitch"), 450e9);
  EXPECT_EQ(intra("a800-80", "nvlink"), 200e9);
  EXPECT_NEAR(intra("l40s", "pcie3"), 15.754e9, 1e6);
  EXPECT_NEAR(intra("l40s", "pcie4"), 31.508e9, 1e6);
  EXPECT_NEAR(intra("l40s", "pcie5"), 63.015e9, 1e6);
}

TEST_F(ClusterFile, EveryInterNodeLinkRunsAtTheRateInItsName) {
  for (const auto& [name, gigabits] : std::vector<std::pair<std::string, double>>{
           {"ib-100g", 100}, {"ib-200g", 200}, {"eth-1g", 1}, {"eth-10g", 10}}) {
    const Cluster cluster = read("gpu: rtx3090\nnodes: 2\ngpus_per_node: 1\ninter_node: " + name + "\n");
    EXPECT_EQ(cluster.inter_node.bandwidth_bytes_per_second, gigabits * 1e9 / 8) << name;
    EXPECT_EQ(cluster.intra_node, Link{});
  }
}

TEST_F(ClusterFile, ALinkMayBeGivenInNumbers) {
  const Cluster cluster = read("gpu: a40\ngpus_per_node: 2\nintra_node: {bandwidth_gbs: 1.6, latency_us: 20}\n");
  EXPECT_EQ(cluster.nodes, 1);
  EXPECT_EQ(cluster.intra_node.bandwidth_bytes_per_second, 1.6e9);
  EXPECT_DOUBLE_EQ(cluster.intra_node.latency_seconds, 20e-6);
}

TEST_F(ClusterFile, CpuRanksMeetInMemory) {
  EXPECT_EQ(read("gpu: cpu\ngpus_per_node: 4\n"), local_cluster(4));
  EXPECT_EQ(read("gpu: cpu\nnodes: 1\ngpus_per_node: 4\nintra_node: memory\n"), local_cluster(4));
  EXPECT_GT(local_cluster(4).intra_node.bandwidth_bytes_per_second, 0);
  EXPECT_EQ(local_cluster(4).gpus(), 4);
}

TEST_F(ClusterFile, AProfileFileCountsFromTheClusterFile) {
  folder.write("profiles/mine.json", "{}");
  const Cluster cluster = read("gpu: profiles/mine.json\ngpus_per_node: 1\n");
  EXPECT_EQ(cluster.gpu, "profiles/mine.json");
  EXPECT_EQ(cluster.profile, folder / "profiles/mine.json");
  EXPECT_TRUE(read("gpu: a40\ngpus_per_node: 1\n").profile.empty());
}

TEST_F(ClusterFile, LinksOfAProfileAreThoseOfItsGpus) {
  costmodel::Profile profile = costmodel::analytic_profile("h100", costmodel::DataType::bf16);
  folder.write("mine.json", costmodel::to_json(profile));
  const std::string yaml = "gpu: mine.json\ngpus_per_node: 2\nintra_node: nvlink\n";
  EXPECT_EQ(read(yaml).intra_node, read("gpu: h100\ngpus_per_node: 2\nintra_node: nvlink\n").intra_node);
  profile.device = "";
  folder.write("mine.json", costmodel::to_json(profile));
  EXPECT_TRUE(contains(complaint(yaml), "the speed of nvlink on 'cpu' is not known; give {"));
}

TEST_F(ClusterFile, SurvivesTheWayThroughJson) {
  folder.write("mine.json", "{}");
  for (const Cluster& cluster :
       {local_cluster(2), read("gpu: a40\nnodes: 8\ngpus_per_node: 2\nintra_node: pcie4\ninter_node: eth-10g\n"),
        read("gpu: mine.json\ngpus_per_node: 3\nintra_node: {bandwidth_gbs: 0.123456789012345, latency_us: 7.7}\n")}) {
    const std::string json = to_json(cluster);
    EXPECT_EQ(cluster_from(parse_json(json, "plan.json")), cluster);
    EXPECT_EQ(to_json(cluster_from(parse_json(json, "plan.json"))), json);
  }
}

TEST_F(ClusterFile, EveryBadValueIsNamedWithItsLineAndARemedy) {
  const std::vector<std::pair<std::string, std::string>> complaints = {
      {"- gpu: a40\n- gpu: h100\n",
       "cluster.yaml:1: several pools are not supported yet in this build; give one pool: gpu, nodes, gpus_per_node, "
       "intra_node, inter_node"},
      {"nodes: 1\ngpu: [a40, h100]\n",
       "cluster.yaml:2: several pools are not supported yet in this build; give one pool: gpu, nodes, gpus_per_node, "
       "intra_node, inter_node"},
      {"gpu: a40\nnode: 1\n",
       "cluster.yaml:2: unknown key 'node'; valid keys: gpu, nodes, gpus_per_node, intra_node, inter_node"},
      {"nodes: 1\n", "cluster.yaml:1: 'gpu' is missing; add 'gpu'"},
      {"gpu: a40\nnodes: 0\n", "cluster.yaml:2: 'nodes' is '0'; give a whole number in 1..1073741824"},
      {"gpu: a40\nnodes: 2\ngpus_per_node: 0\n",
       "cluster.yaml:3: 'gpus_per_node' is '0'; give a whole number in 1..536870912"},
      {"gpu: a40\ngpus_per_node: 2\n", "cluster.yaml:1: 'intra_node' is missing; add 'intra_node'"},
      {"gpu: a40\nnodes: 2\ngpus_per_node: 1\n", "cluster.yaml:1: 'inter_node' is missing; add 'inter_node'"},
      {"gpu: a40\ngpus_per_node: 2\nintra_node: wire\n",
       "cluster.yaml:3: unknown link 'wire'; valid: nvlink, nvswitch, nvswitch-sharp, pcie3, pcie4, pcie5, cpu-staged "
       "or "
       "{bandwidth_gbs: , latency_us: }"},
      {"gpu: a40\ngpus_per_node: 2\nintra_node: ib-100g\n",
       "cluster.yaml:3: unknown link 'ib-100g'; valid: nvlink, nvswitch, nvswitch-sharp, pcie3, pcie4, pcie5, "
       "cpu-staged or "
       "{bandwidth_gbs: , latency_us: }"},
      {"gpu: cpu\ngpus_per_node: 2\nintra_node: pcie9\n",
       "cluster.yaml:3: unknown link 'pcie9'; valid: memory or {bandwidth_gbs: , latency_us: }"},
      {"gpu: a40\nnodes: 2\ngpus_per_node: 1\ninter_node: nvlink\n",
       "cluster.yaml:4: unknown link 'nvlink'; valid: cpu-staged, ib-100g, ib-200g, ib-400g, eth-1g, eth-10g, eth-25g "
       "or "
       "{bandwidth_gbs: , latency_us: }"},
      {"gpu: a40\ngpus_per_node: 2\nintra_node: nvswitch\n",
       "cluster.yaml:3: no NVSwitch joins GPUs of kind 'a40'; give nvlink (their bridge) or pcie4"},
      {"gpu: a100\ngpus_per_node: 8\nintra_node: nvswitch-sharp\n",
       "cluster.yaml:3: the NVSwitch of 'a100-80' cannot add (SHARP); give nvswitch"},
      {"gpu: l40s\ngpus_per_node: 2\nintra_node: nvlink\n",
       "cluster.yaml:3: the speed of nvlink on 'l40s' is not known; give {bandwidth_gbs: , latency_us: }, or pcie3, "
       "pcie4 or pcie5"},
      {"gpu: a40\ngpus_per_node: 2\nintra_node: {bandwidth_gbs: 0, latency_us: 1}\n",
       "cluster.yaml:3: bandwidth_gbs 0 is not usable; give one above 0"},
      {"gpu: a40\ngpus_per_node: 2\nintra_node: {bandwidth_gbs: 1, latency_us: -1}\n",
       "cluster.yaml:3: 'latency_us' is '-1'; give latency_us >= 0"},
      {"gpu: a40\ngpus_per_node: 2\nintra_node: {gbs: 1}\n",
       "cluster.yaml:3: unknown key 'gbs'; valid keys: bandwidth_gbs, latency_us"},
      {"", "cluster.yaml:1: the file is empty; give gpu, nodes, gpus_per_node"},
  };
  for (const auto& [text, expected] : complaints) EXPECT_EQ(complaint(text), expected) << text;
  EXPECT_TRUE(contains(complaint("gpu: none.json\n"), "none.json: no such profile; give a GPU's name, cpu, or a file"));
}

}  // namespace
}  // namespace braid::workload

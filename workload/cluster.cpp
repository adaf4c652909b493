#include "workload/cluster.h"

#include <nlohmann/json.hpp>

#include "costmodel/links/link_json.h"
#include "costmodel/profile/profile.h"

namespace braid::workload {
namespace {

constexpr std::int64_t kMostGpus = std::int64_t{1} << 30;

void refuse_several_pools(const Node& node) {
  if (node.is_sequence()) {
    throw node.error("several pools are not supported yet in this build",
                     "give one pool: gpu, nodes, gpus_per_node, intra_node, inter_node");
  }
}

bool names_a_file(const std::string& gpu) {
  return gpu.find('/') != std::string::npos || gpu.ends_with(".json");
}

/// The GPUs that links join: of a profile, those that it is of.
std::string device_of(const Cluster& cluster) {
  if (cluster.profile.empty()) return cluster.gpu;
  const std::string device = costmodel::read_profile(cluster.profile).device;
  return device.empty() ? "cpu" : device;
}

/// The link under `key`; a cluster that needs none may leave it out.
Link read_link_at(const Node& root, std::string_view key, const Cluster& cluster, bool inside_node) {
  const Node* node = root.find(key);
  if (node && !node->is_null())
    return costmodel::read_link(*node, node->is_map() ? cluster.gpu : device_of(cluster), inside_node);
  if (inside_node && cluster.own()) return costmodel::memory_link();
  const bool needed = inside_node ? cluster.gpus_per_node > 1 : cluster.nodes > 1;
  return needed ? costmodel::read_link(root.at(key), cluster.gpu, inside_node) : Link{};
}

}  // namespace

Cluster read_cluster(const std::filesystem::path& file) {
  const Node root = read_yaml(file);
  if (root.is_null()) throw error_at(file.string(), 1, "the file is empty", "give gpu, nodes, gpus_per_node");
  refuse_several_pools(root);
  root.allow_only({"gpu", "nodes", "gpus_per_node", "intra_node", "inter_node"});
  refuse_several_pools(root.at("gpu"));

  Cluster cluster;
  cluster.gpu = root.string_at("gpu");
  if (cluster.gpu.empty()) throw root.at("gpu").error("'gpu' is empty", "give a GPU's name, cpu, or a profile file");
  if (names_a_file(cluster.gpu)) {
    cluster.profile = std::filesystem::absolute(file.parent_path() / cluster.gpu).lexically_normal();
    if (!std::filesystem::is_regular_file(cluster.profile)) {
      throw root.at("gpu").error(fmt::format("{}: no such profile", cluster.profile.string()),
                                 "give a GPU's name, cpu, or a file that braid profile wrote");
    }
  }
  cluster.nodes = root.integer_or("nodes", 1, 1, kMostGpus);
  cluster.gpus_per_node = root.integer_at("gpus_per_node", 1, kMostGpus / cluster.nodes);
  cluster.intra_node = read_link_at(root, "intra_node", cluster, true);
  cluster.inter_node = read_link_at(root, "inter_node", cluster, false);
  return cluster;
}

Cluster local_cluster(std::int64_t ranks, std::string_view gpu) {
  Cluster cluster;
  cluster.gpu = gpu;
  cluster.gpus_per_node = ranks;
  cluster.intra_node = costmodel::memory_link();
  return cluster;
}

std::string to_json(const Cluster& cluster) {
  nlohmann::ordered_json json;
  json["gpu"] = cluster.gpu;
  json["profile"] = cluster.profile.string();
  json["nodes"] = cluster.nodes;
  json["gpus_per_node"] = cluster.gpus_per_node;
  json["intra_node"] = costmodel::json_of(cluster.intra_node);
  json["inter_node"] = costmodel::json_of(cluster.inter_node);
  try {
    return json.dump(2);
  } catch (const nlohmann::json::exception&) {
    throw error("{}: the path is not UTF-8; rename it", cluster.profile.string());
  }
}

Cluster cluster_from(const Node& node) {
  node.allow_only({"gpu", "profile", "nodes", "gpus_per_node", "intra_node", "inter_node"});
  Cluster cluster;
  cluster.gpu = node.string_at("gpu");
  cluster.profile = node.string_at("profile");
  cluster.nodes = node.integer_at("nodes", 1, kMostGpus);
  cluster.gpus_per_node = node.integer_at("gpus_per_node", 1, kMostGpus / cluster.nodes);
  cluster.intra_node = costmodel::link_from(node.at("intra_node"));
  cluster.inter_node = costmodel::link_from(node.at("inter_node"));
  return cluster;
}

}  // namespace braid::workload

#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/node.h"
#include "costmodel/links/link.h"

namespace braid::workload {

using costmodel::Link;

/// One pool of like nodes.
struct Cluster {
  std::string gpu;                ///< a built-in name, "cpu" or "cuda"; of a profile file, the path as written
  std::filesystem::path profile;  ///< absolute, when `gpu` is a profile file; else empty
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 1;  ///< ranks, on "cpu"
  Link intra_node;
  Link inter_node;

  /// Of the machines that braid itself runs on and measures.
  bool own() const { return gpu == "cpu" || gpu == "cuda"; }
  std::int64_t gpus() const { return nodes * gpus_per_node; }
  costmodel::Interconnect interconnect() const { return {intra_node, inter_node, gpus_per_node}; }

  bool operator==(const Cluster&) const = default;
};

/// Reads cluster.yaml. A link may be left out where no two ranks are joined by it, and `intra_node` on "cpu". Whether
/// the GPU is a known one is for the cost model to say. Throws Error "FILE:LINE: ..."; so also for a list of pools.
Cluster read_cluster(const std::filesystem::path& file);

/// One node of "cpu" with a rank per core, or of "cuda" with a rank per GPU.
Cluster local_cluster(std::int64_t ranks, std::string_view gpu = "cpu");

/// The form embedded in plan.json, and the same cluster read back from it.
std::string to_json(const Cluster& cluster);
Cluster cluster_from(const Node& node);

}  // namespace braid::workload

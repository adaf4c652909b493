#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/node.h"
#include "costmodel/gpu/device.h"

namespace braid::costmodel {

/// What kinds of links behave alike under NCCL.
enum class LinkKind { none, memory, nvlink, nvswitch_sharp, pcie, network, ethernet, cpu_staged, custom };

/// A way between two ranks, in one direction: the wire's own figures. What messages make of them is in
/// collective_model.h. Bandwidth 0 says that there is none, which only a cluster without neighbours of that kind has.
struct Link {
  std::string name = "none";
  double bandwidth_bytes_per_second = 0;
  double latency_seconds = 0;

  /// By the name; any other is custom.
  LinkKind kind() const;

  bool operator==(const Link&) const = default;
};

/// What joins the ranks of a "cpu" node.
Link memory_link();

/// The link of that name between GPUs of a kind. Throws Error that lists the names, and where the GPU has none.
Link named_link(std::string_view name, const Device& device);

/// A link of cluster.yaml: a name (where `inside_node` says which are meant), or {bandwidth_gbs, latency_us} in 10⁹
/// bytes a second and microseconds. NVLink's speed is that of `gpu`. Throws Error that lists the names.
Link read_link(const Node& node, const std::string& gpu, bool inside_node);

/// The ways between the GPUs of a cluster whose ranks fill one node after another.
struct Interconnect {
  Link intra_node;
  Link inter_node;
  std::int64_t ranks_per_node = 0;  ///< 0: all on one

  std::int64_t node_of(std::int64_t rank) const { return ranks_per_node > 0 ? rank / ranks_per_node : 0; }

  bool operator==(const Interconnect&) const = default;
};

}  // namespace braid::costmodel

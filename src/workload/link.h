#pragma once

#include <string>
#include <string_view>

#include "base/node.h"

namespace braid::workload {

/// A way between two ranks, in one direction. A message of b bytes takes latency + b / bandwidth. Bandwidth 0 says that
/// there is none, which only a cluster without neighbours of that kind has.
struct Link {
  std::string name = "none";
  double bandwidth_bytes_per_second = 0;
  double latency_seconds = 0;

  bool operator==(const Link&) const = default;
};

/// What joins the ranks of a "cpu" node.
Link memory_link();

/// A link of cluster.yaml: a name (where `inside_node` says which are meant), or {bandwidth_gbs, latency_us} in 10⁹
/// bytes a second and microseconds. NVLink's speed is that of `gpu`. Throws Error that lists the names.
Link read_link(const Node& node, const std::string& gpu, bool inside_node);

}  // namespace braid::workload

#include "costmodel/links/link_json.h"

namespace braid::costmodel {

nlohmann::ordered_json json_of(const Link& link) {
  return {{"name", link.name},
          {"bandwidth_bytes_per_second", link.bandwidth_bytes_per_second},
          {"latency_seconds", link.latency_seconds}};
}

nlohmann::ordered_json json_of(const Interconnect& interconnect) {
  return {{"intra_node", json_of(interconnect.intra_node)},
          {"inter_node", json_of(interconnect.inter_node)},
          {"ranks_per_node", interconnect.ranks_per_node}};
}

Link link_from(const Node& node) {
  return {node.string_at("name"), node.number_at("bandwidth_bytes_per_second", 0.0),
          node.number_at("latency_seconds", 0.0)};
}

Interconnect interconnect_from(const Node& node) {
  return {link_from(node.at("intra_node")), link_from(node.at("inter_node")), node.integer_at("ranks_per_node", 0)};
}

}  // namespace braid::costmodel

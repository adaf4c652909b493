#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/latency/operator_graph.h"

namespace braid::planner {

using SubgraphIndex = std::int32_t;

/// Where a list of all subgraphs has it.
inline std::size_t place(SubgraphIndex index) {
  return static_cast<std::size_t>(index);
}

/// Operators of one hTask.
struct SubgraphPart {
  std::int32_t htask = 0;
  std::vector<OperatorVertex> vertices;  ///< of the hTask's graph, in its order
  bool operator==(const SubgraphPart&) const = default;
};

/// Operators that are launched in one go: first all computation, then, once it has ended, communication.
struct Subgraph {
  std::vector<SubgraphPart> parts;  ///< several where adapters of several hTasks are fused
  bool adapters = false;            ///< nothing but adapters
  std::int32_t depth = 0;           ///< subgraphs on the longest way here
  Nanoseconds compute = 0;
  Nanoseconds communication = 0;
  std::vector<SubgraphIndex> predecessors;  ///< ascending, each once

  std::int32_t htask() const { return parts.front().htask; }
  Nanoseconds latency() const { return compute + communication; }
  bool operator==(const Subgraph&) const = default;
};

/// Whether adapters stand in subgraphs of their own, so that those of several hTasks can be fused.
enum class Adapters { with_neighbours, isolated };

/// Segments an hTask's operators (MuxTune §3.4.2): consecutive computation is one subgraph, and communication closes
/// the deepest of the subgraphs whose results it moves. Isolated are the adapters of a frozen product, together, unless
/// communication waits for them: their call includes the addition to the product's result, MuxTune's Add, which belongs
/// to the subgraph of the collective.
///
/// Every vertex is in one subgraph; the subgraphs are a DAG, in order of their depth. Throws InternalError when
/// vertices do not stand in topological order. Cost: linear, and sorting.
std::vector<Subgraph> segment(const OperatorGraph& graph, Adapters adapters = Adapters::isolated);

/// The subgraphs of all hTasks of a bucket in one list, indices shifted.
std::vector<Subgraph> joined(std::span<const std::vector<Subgraph>> htasks);

}  // namespace braid::planner

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <boost/graph/adjacency_list.hpp>

#include "costmodel/work/operators.h"
#include "planner/latency/launch_pricing.h"

namespace braid::planner {

/// What the GPU or its collectives do in one launch of a stage: a call and those whose kernels run beside it.
struct OperatorNode {
  std::vector<costmodel::OperatorCall> calls;
  bool communication = false;  ///< runs on the communication stream
  /// Adapters alone, addition to the frozen layer's result included: may stand in a subgraph of its own. LoRAFusion's
  /// kernels do half of their work in the frozen layer's product and never stand alone.
  bool adapter = false;
  Nanoseconds latency = 0;
  std::int32_t htask = 0;
  std::int32_t layer = -1;                                     ///< of the stage; -1 outside its layers
  costmodel::ModuleGroup group = costmodel::ModuleGroup::qkv;  ///< frozen products and adapters
  bool operator==(const OperatorNode&) const = default;
};

/// Edges lead to whoever needs the result. Vertices stand in an order in which the stage may run them.
using OperatorGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, OperatorNode>;
using OperatorVertex = OperatorGraph::vertex_descriptor;

/// The operators of one Forward or Backward (`pass` forward or backward) of an hTask on a stage, as a DAG (MuxTune
/// §3.4.2): exactly the calls of costmodel::stage_operators and stage_collectives, layer by layer. Adapters read what
/// their frozen product reads, and whatever reads the product waits for both. What going back computes again it
/// computes no sooner than its layer is reached, and a whole layer before anything of its way back. `load` has tokens.
/// Each kind of call is priced once.
OperatorGraph stage_graph(const costmodel::BackboneShape& backbone, const costmodel::StageShape& stage,
                          const costmodel::MicrobatchLoad& load, costmodel::Pass pass,
                          const costmodel::Storage& storage, const LaunchPricing& pricing, std::int32_t htask = 0);

}  // namespace braid::planner

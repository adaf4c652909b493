#include "planner/latency/subgraph.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/stages.h"

namespace braid::planner {
namespace {

using costmodel::AdapterKernels;
using costmodel::Pass;

/// Any DAG, with communication and adapters anywhere.
OperatorGraph any_graph() {
  const auto size = *rc::gen::inRange<OperatorVertex>(1, 24);
  OperatorGraph graph;
  for (OperatorVertex v = 0; v < size; ++v) {
    OperatorNode node;
    const int kind = *rc::gen::inRange(0, 6);
    node.communication = kind == 0;
    node.adapter = kind == 1 || kind == 2;
    node.latency = *rc::gen::inRange(0, 9);
    node.layer = *rc::gen::inRange(0, 2);
    graph[boost::add_vertex(graph)] = node;
    for (OperatorVertex before = 0; before < v; ++before) {
      if (*rc::gen::inRange(0, 4) == 0) boost::add_edge(before, v, graph);
    }
  }
  return graph;
}

/// Which subgraph each vertex is in; every vertex in one, in one part.
std::vector<std::size_t> places(const OperatorGraph& graph, const std::vector<Subgraph>& subgraphs) {
  std::vector<std::size_t> place(boost::num_vertices(graph), subgraphs.size());
  for (std::size_t i = 0; i < subgraphs.size(); ++i) {
    RC_ASSERT(subgraphs[i].parts.size() == 1U);
    for (const OperatorVertex v : subgraphs[i].parts.front().vertices) {
      RC_ASSERT(place[v] == subgraphs.size());
      place[v] = i;
    }
  }
  RC_ASSERT(std::count(place.begin(), place.end(), subgraphs.size()) == 0);
  return place;
}

RC_GTEST_PROP(Segment, PartitionsTheOperatorsIntoADagInOrderOfDepth, ()) {
  const OperatorGraph graph = any_graph();
  const std::vector<Subgraph> subgraphs =
      segment(graph, *rc::gen::element(Adapters::isolated, Adapters::with_neighbours));
  const std::vector<std::size_t> place = places(graph, subgraphs);
  for (std::size_t i = 0; i < subgraphs.size(); ++i) {
    std::set<SubgraphIndex> before;
    Nanoseconds compute = 0, communication = 0;
    for (const OperatorVertex v : subgraphs[i].parts.front().vertices) {
      (graph[v].communication ? communication : compute) += graph[v].latency;
      for (const OperatorVertex u : predecessors_of(graph, v)) {
        if (place[u] != i) before.insert(static_cast<SubgraphIndex>(place[u]));
      }
    }
    RC_ASSERT(subgraphs[i].compute == compute);
    RC_ASSERT(subgraphs[i].communication == communication);
    RC_ASSERT(subgraphs[i].predecessors == std::vector<SubgraphIndex>(before.begin(), before.end()));
    std::int32_t depth = 0;
    for (const SubgraphIndex u : before) {
      RC_ASSERT(static_cast<std::size_t>(u) < i);
      depth = std::max(depth, subgraphs[static_cast<std::size_t>(u)].depth + 1);
    }
    RC_ASSERT(subgraphs[i].depth == depth);
    if (i > 0) RC_ASSERT(subgraphs[i - 1].depth <= depth);
  }
}

RC_GTEST_PROP(Segment, CommunicationClosesTheSubgraphWhoseResultsItMoves, ()) {
  const OperatorGraph graph = any_graph();
  const std::vector<Subgraph> subgraphs =
      segment(graph, *rc::gen::element(Adapters::isolated, Adapters::with_neighbours));
  const std::vector<std::size_t> place = places(graph, subgraphs);
  for (OperatorVertex v = 0; v < place.size(); ++v) {
    const std::set<OperatorVertex> before = predecessors_of(graph, v);
    bool joins = before.empty();
    for (const OperatorVertex u : before) {
      // Nothing that computes waits for communication of its own subgraph.
      if (graph[u].communication && !graph[v].communication) RC_ASSERT(place[u] != place[v]);
      joins = joins || place[u] == place[v];
    }
    if (graph[v].communication) RC_ASSERT(joins);
  }
}

RC_GTEST_PROP(Segment, IsolatedAreJustTheAdaptersThatNoCommunicationWaitsFor, ()) {
  const OperatorGraph graph = any_graph();
  const std::vector<Subgraph> subgraphs = segment(graph, Adapters::isolated);
  const std::vector<std::size_t> place = places(graph, subgraphs);
  std::vector<bool> waited(place.size(), false);
  for (OperatorVertex v = place.size(); v-- > 0;) {
    for (const OperatorVertex w : successors_of(graph, v))
      waited[v] = waited[v] || graph[w].communication || (graph[w].adapter && waited[w]);
    RC_ASSERT(subgraphs[place[v]].adapters == (graph[v].adapter && !waited[v]));
  }
  for (const Subgraph& subgraph : segment(graph, Adapters::with_neighbours)) RC_ASSERT(!subgraph.adapters);
}

RC_GTEST_PROP(Segment, BreaksALayerOnlyAtItsCollectives, ()) {
  AnyStage any = any_stage();
  any.stage = {*rc::gen::inRange(1, 6), false, false, *rc::gen::element(1, 2, 4)};
  any.pass = Pass::forward;
  const OperatorGraph graph = graph_of(any, any_load(2, any_kernels()));
  const std::size_t collectives = any.stage.tp > 1 ? 2 * static_cast<std::size_t>(any.stage.layers) : 0;
  RC_ASSERT(segment(graph, Adapters::with_neighbours).size() == collectives + 1);
}

RC_GTEST_PROP(Segment, AStagesSubgraphsAreOneChainButForAdaptersBesideTheirProduct, ()) {
  const AnyStage any = any_stage();
  const OperatorGraph graph = graph_of(any, any_load(*rc::gen::inRange(1, 3), any_kernels()));
  std::vector<std::int32_t> others;
  for (const Subgraph& subgraph : segment(graph, Adapters::isolated)) {
    if (!subgraph.adapters) others.push_back(subgraph.depth);
  }
  RC_ASSERT(std::adjacent_find(others.begin(), others.end()) == others.end());
}

TEST(Segment, ALayersSubgraphsUnderTensorParallelism) {
  AnyStage any{costmodel::small_backbone(), {1, false, false, 2}, Pass::forward, {}};
  const costmodel::MicrobatchLoad load = costmodel::load_of(costmodel::adapter_on_all(4), {40});
  const auto names = [&] {
    const OperatorGraph graph = graph_of(any, load);
    std::vector<std::string> result;
    for (const Subgraph& subgraph : segment(graph)) {
      std::string& line = result.emplace_back();
      for (const OperatorVertex v : subgraph.parts.front().vertices)
        line += (line.empty() ? "" : " ") + std::string(name(graph[v].calls.front().op));
    }
    return result;
  };
  EXPECT_EQ(names(), (std::vector<std::string>{"dispatch rms_norm linear", "lora",
                                               "rope attention lora linear all_reduce", "residual rms_norm linear",
                                               "lora", "swiglu lora linear all_reduce", "residual"}));
  any.pass = Pass::backward;
  EXPECT_EQ(names(), (std::vector<std::string>{"dispatch swiglu linear", "lora",
                                               "swiglu rms_norm lora linear all_reduce", "rms_norm linear", "lora",
                                               "attention rope rms_norm lora linear all_reduce", "rms_norm"}));
}

}  // namespace
}  // namespace braid::planner

#include "planner/latency/clock_schedule.h"

#include "planner/latency/adapter_fusion.h"

namespace braid::planner {
namespace {

/// One list of all, each microbatch's subgraphs as of the hTask that its place says.
std::vector<Subgraph> joined_by_place(std::span<const SegmentedGraph* const> graphs,
                                      std::vector<Subgraph> SegmentedGraph::*segments) {
  std::vector<Subgraph> all;
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    const auto shift = static_cast<SubgraphIndex>(all.size());
    for (const Subgraph& subgraph : graphs[i]->*segments) {
      Subgraph& placed = all.emplace_back(subgraph);
      for (SubgraphPart& part : placed.parts) part.htask = static_cast<std::int32_t>(i);
      for (SubgraphIndex& before : placed.predecessors) before += shift;
    }
  }
  return all;
}

}  // namespace

SegmentedGraph segmented_graph(const costmodel::BackboneShape& backbone, const costmodel::StageShape& stage,
                               const costmodel::MicrobatchLoad& load, costmodel::Pass pass,
                               const costmodel::Storage& storage, const LaunchPricing& pricing) {
  SegmentedGraph made{stage_graph(backbone, stage, load, pass, storage, pricing), {}, {}};
  made.with_neighbours = segment(made.graph, Adapters::with_neighbours);
  made.isolated = segment(made.graph, Adapters::isolated);
  return made;
}

LaunchedSubgraphs launched_together(std::span<const SegmentedGraph* const> graphs,
                                    std::span<const costmodel::MicrobatchLoad> loads, LaunchRule rule,
                                    const LaunchPricing& pricing, double slowdown) {
  LaunchedSubgraphs apart{joined_by_place(graphs, &SegmentedGraph::with_neighbours), {}};
  apart.launches = schedule(apart.subgraphs, rule, slowdown);
  const bool share = loads.front().kernels == costmodel::AdapterKernels::side_by_side;
  if (!share || !single_tasks(loads)) return apart;
  std::vector<const OperatorGraph*> operators;
  for (const SegmentedGraph* segmented : graphs) operators.push_back(&segmented->graph);
  LaunchedSubgraphs fused{fuse_adapters(joined_by_place(graphs, &SegmentedGraph::isolated), operators, loads, pricing),
                          {}};
  fused.launches = schedule(fused.subgraphs, rule, slowdown);
  return fused.launches.makespan < apart.launches.makespan ? fused : apart;
}

ClockSchedule clock_schedule(const costmodel::BackboneShape& backbone, const costmodel::StageShape& stage,
                             std::span<const costmodel::MicrobatchLoad> loads, costmodel::Pass pass,
                             const costmodel::Storage& storage, LaunchRule rule, const LaunchPricing& pricing,
                             double slowdown) {
  std::vector<SegmentedGraph> segmented;
  std::vector<const SegmentedGraph*> places;
  segmented.reserve(loads.size());
  for (const costmodel::MicrobatchLoad& load : loads)
    places.push_back(&segmented.emplace_back(segmented_graph(backbone, stage, load, pass, storage, pricing)));
  LaunchedSubgraphs launched = launched_together(places, loads, rule, pricing, slowdown);
  ClockSchedule made{{}, std::move(launched.subgraphs), std::move(launched.launches)};
  for (std::size_t i = 0; i < segmented.size(); ++i) {
    OperatorGraph& graph = made.graphs.emplace_back(std::move(segmented[i].graph));
    for (OperatorVertex vertex = 0; vertex < boost::num_vertices(graph); ++vertex)
      graph[vertex].htask = static_cast<std::int32_t>(i);
  }
  return made;
}

}  // namespace braid::planner

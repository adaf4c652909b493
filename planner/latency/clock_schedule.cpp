#include "planner/latency/clock_schedule.h"

#include "planner/latency/adapter_fusion.h"

namespace braid::planner {

ClockSchedule clock_schedule(const costmodel::BackboneShape& backbone, const costmodel::StageShape& stage,
                             std::span<const costmodel::MicrobatchLoad> loads, costmodel::Pass pass,
                             const costmodel::Storage& storage, LaunchRule rule, const LaunchPricing& pricing,
                             double slowdown) {
  ClockSchedule apart;
  apart.graphs.reserve(loads.size());
  for (const costmodel::MicrobatchLoad& load : loads)
    apart.graphs.push_back(
        stage_graph(backbone, stage, load, pass, storage, pricing, static_cast<std::int32_t>(apart.graphs.size())));
  const auto subgraphs = [&](Adapters adapters) {
    std::vector<std::vector<Subgraph>> segments;
    for (const OperatorGraph& graph : apart.graphs) segments.push_back(segment(graph, adapters));
    return joined(segments);
  };
  apart.subgraphs = subgraphs(Adapters::with_neighbours);
  apart.launches = schedule(apart.subgraphs, rule, slowdown);
  const bool share = loads.front().kernels == costmodel::AdapterKernels::side_by_side;
  if (!share || !single_tasks(loads)) return apart;
  std::vector<Subgraph> fused = fuse_adapters(subgraphs(Adapters::isolated), apart.graphs, loads, pricing);
  LaunchSchedule launches = schedule(fused, rule, slowdown);
  if (launches.makespan < apart.launches.makespan) {
    apart.subgraphs = std::move(fused);
    apart.launches = std::move(launches);
  }
  return apart;
}

}  // namespace braid::planner

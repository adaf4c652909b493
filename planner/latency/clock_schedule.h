#pragma once

#include "planner/latency/subgraph_schedule.h"

namespace braid::planner {

/// What a microbatch launches on a stage, whatever goes through beside it.
struct SegmentedGraph {
  OperatorGraph graph;  ///< as of hTask 0
  std::vector<Subgraph> with_neighbours, isolated;
};

SegmentedGraph segmented_graph(const costmodel::BackboneShape& backbone, const costmodel::StageShape& stage,
                               const costmodel::MicrobatchLoad& load, costmodel::Pass pass,
                               const costmodel::Storage& storage, const LaunchPricing& pricing);

/// Subgraphs of several microbatches, which their parts name by their places, and when they are launched.
struct LaunchedSubgraphs {
  std::vector<Subgraph> subgraphs;
  LaunchSchedule launches;
};

/// Of microbatches that were segmented each by itself, with the prices and the stage given here as well; otherwise as
/// clock_schedule.
LaunchedSubgraphs launched_together(std::span<const SegmentedGraph* const> graphs,
                                    std::span<const costmodel::MicrobatchLoad> loads, LaunchRule rule,
                                    const LaunchPricing& pricing, double slowdown);

/// What a stage launches for the microbatches of one clock, one of each hTask of a bucket, and when.
struct ClockSchedule {
  std::vector<OperatorGraph> graphs;  ///< per microbatch, as stage_graph has them
  std::vector<Subgraph> subgraphs;    ///< of all of them; parts name microbatches by their places
  LaunchSchedule launches;
};

/// Subgraphs of several hTasks in an order in which one's collectives run beside another's computation (MuxTune
/// §3.4.2); where all loads run adapters side by side and are of one task each, adapters of several hTasks share
/// launches (§3.4.3) if that is faster. `stage` computes none of its layers again, or all.
///
/// A pure function: with the same prices the ranks of a stage come to the same order, and so meet in their collectives;
/// what is predicted (ClockLatency) and what is to be executed are one list.
ClockSchedule clock_schedule(const costmodel::BackboneShape& backbone, const costmodel::StageShape& stage,
                             std::span<const costmodel::MicrobatchLoad> loads, costmodel::Pass pass,
                             const costmodel::Storage& storage, LaunchRule rule, const LaunchPricing& pricing,
                             double slowdown);

}  // namespace braid::planner

#pragma once

#include "planner/latency/subgraph_schedule.h"

namespace braid::planner {

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

#pragma once

#include "planner/latency/clock_latency.h"
#include "planner/program/timeline.h"

namespace braid::planner {

/// What a Program's instructions are predicted to take, and how much of the sum rests on extrapolation.
struct PredictedDurations {
  Durations durations;
  Durations stalled;  ///< of passes: while collectives on the way are waited for and nothing computes
  costmodel::Estimate total;
};

/// How a plan's passes run.
struct PassStyle {
  std::vector<costmodel::AdapterShape> adapters;  ///< per task
  costmodel::AdapterKernels kernels = costmodel::AdapterKernels::separate;
  /// Weights are gathered from all ranks before they are used (FSDP; weight_gathers.h).
  bool gathers_weights = false;
  LaunchRule launch_rule = LaunchRule::earliest_start;  ///< of hTasks in one clock
};

/// Microbatches of the same load are asked for once, also over several Programs.
PredictedDurations predict_durations(const Program& program, const PassStyle& style, ClockLatency& latency);

/// Model FLOPs: what layers compute, padding too, and the head of rows with a loss, nothing computed again. Of the
/// Forwards and Backwards of some microbatches on all ranks of the Program's stages.
double backbone_flops(const Program& program, std::span<const Microbatch> microbatches,
                      const costmodel::BackboneShape& backbone, std::span<const costmodel::AdapterShape> adapters);

}  // namespace braid::planner

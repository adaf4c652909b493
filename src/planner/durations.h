#pragma once

#include "costmodel/stage_latency.h"
#include "planner/timeline.h"

namespace braid::planner {

/// What a Program's instructions are predicted to take, and how much of the sum rests on extrapolation.
struct PredictedDurations {
  Durations durations;
  costmodel::Estimate total;
};

/// `adapters` are the tasks'. Microbatches of the same load are asked for once, also over several Programs.
PredictedDurations predict_durations(const Program& program, std::span<const costmodel::AdapterShape> adapters,
                                     costmodel::StageLatency& latency);

/// Backbone FLOPs of all Forwards and Backwards.
double backbone_flops(const Program& program, const costmodel::BackboneShape& backbone,
                      std::span<const costmodel::AdapterShape> adapters);

}  // namespace braid::planner

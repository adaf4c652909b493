#pragma once

#include "planner/clock_latency.h"
#include "planner/timeline.h"

namespace braid::planner {

/// What a Program's instructions are predicted to take, and how much of the sum rests on extrapolation.
struct PredictedDurations {
  Durations durations;
  costmodel::Estimate total;
};

/// The tasks' adapters, and how a GPU runs those of one microbatch.
struct TaskAdapters {
  std::vector<costmodel::AdapterShape> shapes;
  costmodel::AdapterKernels kernels = costmodel::AdapterKernels::separate;
};

/// Microbatches of the same load are asked for once, also over several Programs.
PredictedDurations predict_durations(const Program& program, const TaskAdapters& adapters, ClockLatency& latency);

/// Backbone FLOPs of the Forwards and Backwards of all microbatches on all ranks.
double backbone_flops(const Program& program, const costmodel::BackboneShape& backbone,
                      std::span<const costmodel::AdapterShape> adapters);

}  // namespace braid::planner

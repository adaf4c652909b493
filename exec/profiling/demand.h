#pragma once

#include <span>
#include <vector>

#include "costmodel/profile/cost_model.h"
#include "exec/profiling/measured_points.h"
#include "planner/plan/plan.h"
#include "planner/window/window_steps.h"

namespace braid::exec {

/// Microbatches of a plan that run alike, and their share of its predicted time: forward and backward, all layers.
struct Demand {
  MeasuredPoint point;
  double share = 0;
};

/// What windows evenly over a plan's run are made of, the shares of which add up to 1. Chunks of one sample are one
/// point with all microbatches that they span.
std::vector<Demand> demand_of(const planner::FixedPlan& fixed, const planner::WindowInput& input,
                              const costmodel::CostModel& cost);

/// How passes may be measured.
struct MeasuringRules {
  const costmodel::BackboneShape& backbone;
  std::span<const costmodel::AdapterShape> adapters;
  std::int64_t layers = 0;    ///< at most, of a pass
  double seconds_a_pass = 2;  ///< forward and backward; a pass goes through fewer layers, two at least, for it
  double seconds = 30;        ///< in all
};

/// Points that tell most of what is demanded and `profile` cannot tell, the most for their time first: microbatches of
/// the demand, or as much of one as a pass has time for, and sequences of its lengths for attention. Empty where all is
/// known well enough.
std::vector<MeasuredPoint> most_telling(std::span<const Demand> demands, const costmodel::CostModel& cost,
                                        const MeasuringRules& rules);

/// What must be measured for anything to be predicted: of each kind of adapter one point of few tokens, of one kind
/// fewer and more, and the shortest and the longest sequences; of one of `tp` shards.
std::vector<MeasuredPoint> basic_points(std::span<const costmodel::AdapterShape> adapters, std::int64_t longest_context,
                                        std::int32_t tp = 1);

}  // namespace braid::exec

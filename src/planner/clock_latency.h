#pragma once

#include <span>

#include "costmodel/stage_latency.h"
#include "planner/load.h"

namespace braid::planner {

/// What the ranks of a stage take for one Forward or Backward: the microbatches of one clock, one of each hTask of the
/// bucket that it belongs to. Tensor-parallel ranks meet in collectives on the way (costmodel::stage_collectives).
/// Remembers what it was asked. Not for concurrent use; the cost model and the backbone must outlive it.
class ClockLatency {
 public:
  ClockLatency(const costmodel::CostModel& cost, const costmodel::BackboneShape& backbone) : latency_(cost, backbone) {}

  const costmodel::CostModel& cost() const { return latency_.cost(); }
  const costmodel::BackboneShape& backbone() const { return latency_.backbone(); }

  /// `ranks` are the stage's, for they say which links its collectives take.
  costmodel::Estimate estimate(const costmodel::StageShape& stage, std::span<const std::int32_t> ranks,
                               std::span<const costmodel::MicrobatchLoad> loads, costmodel::Pass pass);

  /// One microbatch: its operators and collectives one after another.
  costmodel::Estimate alone(const costmodel::StageShape& stage, std::span<const std::int32_t> ranks,
                            const costmodel::MicrobatchLoad& load, costmodel::Pass pass);

 private:
  costmodel::StageLatency latency_;
};

}  // namespace braid::planner

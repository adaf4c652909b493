#pragma once

#include <map>
#include <vector>

#include "planner/latency/durations.h"

namespace braid::planner {

/// Of one Forward or Backward of several microbatches on tensor-parallel ranks: the places of its parts, in the order
/// in which the ranks take them up, each part once for every collective that it comes to and once for its end.
using Turns = std::vector<std::int32_t>;
/// By instruction; those of one microbatch, and of stages of one rank, have none.
using StageTurns = std::map<InstructionId, Turns>;

/// The turns in which `clock_schedule` launches the subgraphs of a clock's hTasks (MuxTune §3.4.2), so that one's
/// collectives go on beside another's computation. A turn is what a part computes up to its next collective, and that
/// collective's start. A pure function of the Program and the profile: whoever asks comes to the same turns.
class LaunchTurns {
 public:
  /// Copies what it is given.
  LaunchTurns(const costmodel::Profile& profile, const costmodel::BackboneShape& backbone, PassStyle style);

  /// Throws Error where the profile cannot price an operator of the Program.
  StageTurns of(const Program& program, StageIndex stage) const;

 private:
  costmodel::CostModel cost_;
  LaunchPricing pricing_;
  costmodel::BackboneShape backbone_;
  PassStyle style_;
};

}  // namespace braid::planner

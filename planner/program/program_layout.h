#pragma once

#include <vector>

#include "planner/program/lower.h"

namespace braid::planner {

/// Layers that one and the same set of several ranks holds, and the group in which those meet.
struct SharedLayers {
  LayerRange layers;
  GroupIndex group = 0;
};

/// The stages, channels and groups of an instance, and what goes over which.
struct ProgramLayout {
  Program empty;                                  ///< without instructions or microbatches; nothing is under way
  std::vector<StageIndex> first_stage;            ///< per replica
  std::vector<ChannelIndex> activation_to;        ///< per receiving stage
  std::vector<ChannelIndex> gradient_to;          ///< per receiving stage
  std::vector<std::vector<SharedLayers>> shared;  ///< per stage
  std::vector<GroupIndex> norm_group;             ///< per replica

  /// The stage that takes a stage's activations. Interleaved stages are a ring.
  StageIndex next(StageIndex index) const;
  /// And the one that takes its gradients.
  StageIndex previous(StageIndex index) const;
};

/// Ids begin with `first_id` on every stage.
ProgramLayout lay_out(const LoweringRules& rules, InstructionId first_id);

}  // namespace braid::planner

#pragma once

#include <vector>

#include "exec/held_layers.h"
#include "planner/plan/plan.h"

namespace braid::exec {

/// Where a rank of a plan computes. Ranks are numbered replica, then stage, then shard.
struct RankPlace {
  std::int32_t replica = 0;
  std::int32_t stage = 0;              ///< within the replica
  planner::StageIndex program = 0;     ///< of Program::stages
  std::int32_t shard = 0, shards = 1;  ///< of the stage's tensor-parallel ranks
  HeldLayers layers;

  /// Of what several ranks know alike, one tells: of layers and of norms the first replica's first shards.
  bool tells_of_layers() const { return replica == 0 && shard == 0; }
  /// Of losses the first shard of each replica's last stage, which alone knows of its samples.
  bool tells_of_losses() const { return shard == 0; }
};

/// One a rank.
std::vector<RankPlace> rank_places(const planner::FixedPlan& fixed);

}  // namespace braid::exec

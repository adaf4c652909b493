#include "exec/rank_place.h"

namespace braid::exec {

std::vector<RankPlace> rank_places(const planner::FixedPlan& fixed) {
  std::vector<RankPlace> places;
  planner::StageIndex program = 0;
  for (std::size_t replica = 0; replica < fixed.deployment.size(); ++replica) {
    const planner::ReplicaShape& shape = fixed.deployment[replica];
    for (std::int32_t stage = 0; stage < shape.stages(); ++stage, ++program) {
      for (std::int32_t shard = 0; shard < shape.tp; ++shard)
        places.push_back({static_cast<std::int32_t>(replica), stage, program, shard, shape.tp, shape.chunk(stage, 0)});
    }
  }
  return places;
}

}  // namespace braid::exec

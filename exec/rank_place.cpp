#include "exec/rank_place.h"

namespace braid::exec {

std::vector<RankPlace> rank_places(const planner::FixedPlan& fixed) {
  std::vector<RankPlace> places;
  planner::StageIndex program = 0;
  for (std::size_t replica = 0; replica < fixed.deployment.size(); ++replica) {
    const planner::ReplicaShape& shape = fixed.deployment[replica];
    for (std::int32_t stage = 0; stage < shape.stages(); ++stage, ++program) {
      std::vector<planner::LayerRange> runs;
      for (std::int32_t chunk = 0; chunk < shape.model_chunks; ++chunk) runs.push_back(shape.chunk(stage, chunk));
      for (std::int32_t shard = 0; shard < shape.tp; ++shard)
        places.push_back({static_cast<std::int32_t>(replica), stage, program, shard, shape.tp, HeldLayers(runs)});
    }
  }
  return places;
}

}  // namespace braid::exec

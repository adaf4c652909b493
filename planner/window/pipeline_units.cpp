#include "planner/window/pipeline_units.h"

#include <algorithm>

namespace braid::planner {

static PipelineUnit unit_of(const ChunkGroup& group) {
  PipelineUnit unit;
  for (const Microbatch& microbatch : group) unit.chunks.push_back({microbatch.id});
  return unit;
}

std::vector<PipelineUnit> units_of(const std::vector<ChunkGroup>& groups) {
  std::vector<PipelineUnit> units;
  for (const ChunkGroup& group : groups) units.push_back(unit_of(group));
  return units;
}

std::vector<std::vector<PipelineUnit>> clocks_of(const FixedPlan& fixed, std::span<const HTaskRound> round,
                                                 std::size_t replica) {
  std::vector<std::vector<PipelineUnit>> clocks(fixed.buckets.size());
  for (std::size_t b = 0; b < fixed.buckets.size(); ++b) {
    for (const HTaskRound& htask : round) {
      const std::vector<std::int32_t>& bucket = fixed.buckets[b];
      if (std::find(bucket.begin(), bucket.end(), htask.htask) == bucket.end()) continue;
      const std::vector<ChunkGroup>& groups = htask.groups[replica];
      clocks[b].resize(std::max(clocks[b].size(), groups.size()));
      for (std::size_t g = 0; g < groups.size(); ++g) {
        std::vector<std::vector<MicrobatchId>>& chunks = clocks[b][g].chunks;
        chunks.resize(std::max(chunks.size(), groups[g].size()));
        for (std::size_t c = 0; c < groups[g].size(); ++c) chunks[c].push_back(groups[g][c].id);
      }
    }
  }
  return clocks;
}

}  // namespace braid::planner

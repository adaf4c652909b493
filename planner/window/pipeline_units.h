#pragma once

#include <vector>

#include "planner/program/orders.h"
#include "planner/window/batcher.h"

namespace braid::planner {

/// The chunk groups of an hTask as units.
std::vector<PipelineUnit> units_of(const std::vector<ChunkGroup>& groups);

/// The units of one round by bucket and clock: of each hTask of the bucket the group whose turn it is.
std::vector<std::vector<PipelineUnit>> clocks_of(const FixedPlan& fixed, std::span<const HTaskRound> round,
                                                 std::size_t replica);

}  // namespace braid::planner

#pragma once

#include "planner/lower.h"
#include "planner/microbatches.h"

namespace braid::planner {

/// The chunk groups of one hTask in one round of a window.
struct HTaskRound {
  std::int32_t htask = 0;
  std::int64_t round = 0;
  std::vector<std::vector<ChunkGroup>> groups;  ///< per replica, in order
};

/// What each stage of a replica computes in a window, in order, as the plan's template says. Templates other than
/// LoRAPP drain the pipeline after each hTask's global batch, the structured one after each round; orders of rounds
/// then follow one another.
std::vector<StageOrder> compute_orders(const FixedPlan& fixed, std::span<const HTaskRound> rounds, std::size_t replica);

}  // namespace braid::planner

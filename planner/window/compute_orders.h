#pragma once

#include "planner/program/lower.h"
#include "planner/window/batcher.h"

namespace braid::planner {

/// What each stage of a replica computes in a window, in order, as the plan's template says: one that drains the
/// pipeline after each hTask's global batch, or as the structured one after each round; orders of rounds follow one
/// another. The others are UnitStream's.
std::vector<StageOrder> compute_orders(const FixedPlan& fixed, std::span<const HTaskRound> rounds, std::size_t replica);

}  // namespace braid::planner

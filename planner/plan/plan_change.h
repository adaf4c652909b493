#pragma once

#include "planner/plan/plan.h"

namespace braid::planner {

/// What it takes to go on under another plan, where tasks came or went: adapters with their optimizer states are saved,
/// and read again where they train on; ranks load what they have not yet of the frozen weights (LobRA §5.1).
struct PlanChange {
  std::vector<std::string> joined, left;  ///< tasks, by name
  std::int64_t stay = 0;                  ///< tasks of both plans, alike in name and adapter
  Bytes adapters = 0;                     ///< of those, parameters and both AdamW moments
  Bytes loaded = 0;                       ///< of frozen weights, by all ranks
  Bytes most_loaded = 0;                  ///< by the rank that loads most
  std::int64_t loading_ranks = 0, ranks = 0;
};

/// A rank has a run of layers and of each a share, as wide as its shard, as often as the plan keeps copies of the
/// backbone; what of that it had before, under the same number, stays. Throws Error where the plans are of unlike
/// backbones.
PlanChange change_of(const Plan& before, const Plan& after);

/// "1 task joins (c), 1 leaves (a); 3 of 8 ranks load up to 2.4 GB each of weights, ...".
std::string describe(const PlanChange& change);

}  // namespace braid::planner

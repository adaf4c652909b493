#pragma once

#include <cstdint>
#include <vector>

#include "planner/plan/policy.h"

namespace braid::planner {

/// What stages take, in any one unit: each layer, and what the first and the last stage do beside theirs. The last has
/// the head and the loss: as much as two or three layers of Llama-3's vocabulary.
struct StageCosts {
  double layer = 0;
  double first = 0;
  double last = 0;

  friend StageCosts operator+(const StageCosts& a, const StageCosts& b) {
    return {a.layer + b.layer, a.first + b.first, a.last + b.last};
  }
};

struct PassCosts {
  StageCosts forward;
  StageCosts backward;
};

/// Layers of each stage, at least one, so that the slowest stage takes the least that it can; of such splits the one
/// that gives layers one by one to the stage that is then the fastest, the earliest of several. Exact: a law holds it
/// against every split. There must be as many layers as stages.
std::vector<std::int64_t> balanced_layers(std::int64_t layers, std::int64_t stages, const StageCosts& costs);

/// As balanced_layers, so that the slowest Forward and the slowest Backward, each of whichever stage, take the least
/// together: what a step repeats where all Backwards wait for all Forwards, as in GPipe. Exact likewise.
std::vector<std::int64_t> balanced_passes(std::int64_t layers, std::int64_t stages, const PassCosts& costs);

/// Of the input's deployment: a Forward and a Backward of one microbatch of every task, by itself and padded to its
/// max_length.
PassCosts pass_costs(const PolicyInput& input);

}  // namespace braid::planner

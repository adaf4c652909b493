#pragma once

#include <cstdint>
#include <span>

#include "costmodel/profile/cost_model.h"

// Fully sharded data parallelism: what a pass waits for weights.
namespace braid::planner {

/// Seconds to gather a stage's frozen weights from all ranks that keep a share of them. Each gather passes
/// (ranks − 1) / ranks of its weights over a rank's link. Nothing is reduced or scattered: the weights have no
/// gradients, and a share that was gathered is dropped.
struct WeightGathers {
  double rest = 0;   ///< what is of no layer, once a Forward: the loss gives its gradient there, so Backward needs none
  double layer = 0;  ///< each layer's, once a Forward and once a Backward
  double first = 0;  ///< of the first layer of a pass: 0 where the pass before ended at it and left it there
  double slowdown = 1;  ///< of compute while a gather is on its way; infinite where it waits
};

/// Of a stage that is a whole backbone, which each of `ranks` keeps a share of.
WeightGathers weight_gathers(const costmodel::StageShape& stage, std::span<const std::int32_t> ranks,
                             const costmodel::CostModel& cost, const costmodel::BackboneShape& backbone);

/// What a pass takes that computes for `computed` seconds, the last `head` of them above its `layers` layers.
///
/// What is of no layer comes first and stays. A layer waits for its weights; those of the next one come while it
/// computes, and of no other, so that two layers are there at once. With gathers of g and layers that compute for c
/// seconds, s times as long beside a gather, L of them: rest + first + (L − 1) max(c + (1 − 1 / s) g, g) + c + head.
/// Never falls with more of anything, and n passes take no less together than one of n times their mean.
double gathered_seconds(double computed, double head, std::int64_t layers, const WeightGathers& gathers,
                        costmodel::Pass pass);

}  // namespace braid::planner

#pragma once

#include "planner/plan/plan_change.h"

namespace braid::cli {

/// What a run measured of itself, by which the cost of going over to another plan is predicted.
struct ChangeRates {
  double state_seconds = 0;  ///< of keeping state
  Bytes state_bytes = 0;     ///< that was kept
  double load_seconds = 0;   ///< of loading frozen weights, on the rank that waited longest
  Bytes load_bytes = 0;      ///< that it loaded
  double file_seconds = 0;   ///< until a small file is on the disk
  /// Beside these, in the last change; before any, from the loaded weights to the first window.
  double other_seconds = 0;
};

/// Seconds in which nothing is trained when a run goes from one plan to another: the last step under the one has ended,
/// the first under the other has not begun.
struct ChangeCost {
  double predicted = 0;
  double of_parts = 0;  ///< of these, what states and weights are predicted to take
  double measured = 0;
};

/// State is written and read again, and each rank loads what it lacks of the weights.
ChangeCost predict_cost(const planner::PlanChange& change, const ChangeRates& rates);

}  // namespace braid::cli

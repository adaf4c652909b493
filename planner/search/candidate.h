#pragma once

#include <limits>

#include "planner/plan/policy.h"

namespace braid::planner {

/// Seconds of a step as they looked before the full prediction.
struct Looks {
  double sketched = std::numeric_limits<double>::infinity();
  double glanced = std::numeric_limits<double>::infinity();
};

/// A plan that was laid out, and what it is predicted to do.
struct Candidate {
  Arrangement arrangement;
  Prediction prediction;
  Looks looks = {};

  /// Peak memory of the rank with the most.
  Bytes fullest() const;
};
/// Whether a step takes less time.
bool faster(const Candidate& a, const Candidate& b);

}  // namespace braid::planner

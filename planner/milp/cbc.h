#pragma once

#include <functional>

#include "planner/milp/solve.h"

namespace braid::planner::milp {

struct CbcOutcome {
  Ended ended = Ended::nodes;
  double bound = -kInfinity;
};

/// Solves in this process, and tells each better solution as it is found. Prints what CBC prints.
CbcOutcome run_cbc(const Model& model, const Limits& limits, std::span<const double> start,
                   const std::function<void(std::span<const double>)>& tell);

}  // namespace braid::planner::milp

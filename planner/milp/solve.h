#pragma once

#include "planner/milp/model.h"

namespace braid::planner::milp {

/// Nodes are what binds, so that a run can be repeated; seconds are a net.
struct Limits {
  std::int64_t nodes = 10'000;
  double seconds = 60;  ///< of the wall clock
  double gap = 0;       ///< relative: a solution proven to be so near the best will do
};

enum class Ended {
  proven,      ///< no solution is better by more than the gap
  infeasible,  ///< there is none
  nodes,       ///< the limit of nodes was reached
  seconds,     ///< that of seconds was: another run may end with another solution
};

struct Solution {
  std::vector<double> values;  ///< by variable, whole numbers where they have to be; empty: none was found
  double cost = kInfinity;
  double bound = -kInfinity;  ///< no solution costs less
  Ended ended = Ended::nodes;

  bool found() const { return !values.empty(); }
};

/// Solved by CBC in a process of its own, as it is not safe to solve two models in threads of one, and some of its
/// heuristics overrun their limits: the process is killed then, and what it had found so far is kept. `start`: a
/// solution that is known, or nothing; what is returned is never worse. Every solution that is returned holds
/// (Model::holds). Throws Error where no process can be started.
Solution solve(const Model& model, const Limits& limits, std::span<const double> start = {});

}  // namespace braid::planner::milp

#pragma once

#include "planner/dispatch/dispatch.h"
#include "planner/milp/solve.h"

namespace braid::planner {

/// The dispatch of a step as a mixed-integer program (LobRA Eq. 3): of each range a whole number of sequences for each
/// replica that holds it, the seconds of the slowest replica the least. A pipeline's ends, which the paper leaves out,
/// are in it. `most_seconds`: no better solution takes as long.
milp::Model dispatch_model(std::span<const ReplicaSpeed> replicas, std::span<const RangeLoad> ranges,
                           double most_seconds);

/// A dispatch as values of the model.
std::vector<double> values_of(const Dispatched& dispatched, std::span<const ReplicaSpeed> replicas,
                              std::span<const RangeLoad> ranges, const milp::Model& model);
/// The sequences of a solution; its bound is left as it is.
Dispatched dispatched_of(std::span<const double> values, std::span<const ReplicaSpeed> replicas,
                         std::span<const RangeLoad> ranges);

/// Limits of one step's program.
inline constexpr milp::Limits kDispatchLimits{.nodes = 20, .seconds = 60, .gap = 1e-3};

struct SolvedDispatch {
  Dispatched dispatched;
  bool truncated = false;  ///< seconds ended it, and another run may end otherwise
};
/// From dispatch_balanced's on; never slower.
SolvedDispatch solve_dispatch(std::span<const ReplicaSpeed> replicas, std::span<const RangeLoad> ranges,
                              const milp::Limits& limits);

}  // namespace braid::planner

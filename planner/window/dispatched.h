#pragma once

#include "planner/plan/plan.h"
#include "planner/window/packing.h"

namespace braid::planner {

/// A microbatch of sequences of one padded length, on a replica.
struct DispatchedMicrobatch {
  std::int32_t replica = 0;
  std::vector<Segment> segments;  ///< those of a task stand together
};

/// What dispatch_rows deals: how fast the replicas are, and the rows by length range.
struct StepLoads {
  std::vector<ReplicaSpeed> speeds;
  std::vector<std::int64_t> ends;  ///< tokens, of the ranges
  std::vector<RangeLoad> loads;
};
StepLoads step_loads(const FixedPlan& fixed, std::span<const SampleRow> rows, const workload::Workload& workload);

/// A step's rows, of all tasks that take it together, over the plan's replicas: padded to the end of their length
/// range, as many at a time as the replica's microbatches hold, longest microbatches first (LobRA §4.3). Each row once,
/// in the order of the data where the lengths leave a choice. Per replica in the order they enter. Throws Error that
/// names the sample where a row is longer than any replica holds, Failure where the step
/// is not solved in time (LengthDispatch::Kind::solved).
std::vector<DispatchedMicrobatch> dispatch_rows(const FixedPlan& fixed, std::span<const std::vector<SampleRow>> tasks,
                                                const workload::Workload& workload);

}  // namespace braid::planner

#pragma once

#include "planner/plan/plan.h"
#include "planner/window/packing.h"

namespace braid::planner {

/// A microbatch of sequences of one padded length, on a replica.
struct DispatchedMicrobatch {
  std::int32_t replica = 0;
  std::vector<Segment> segments;  ///< those of a task stand together
};

/// A step's rows, of all tasks that take it together, over the plan's replicas: padded to the end of their length
/// range, as many at a time as the replica's microbatches hold, longest microbatches first (LobRA §4.3). Each row once,
/// in the order of the data where the lengths leave a choice. Per replica in the order they enter. Throws Error that
/// names the sample where a row is longer than any replica holds.
std::vector<DispatchedMicrobatch> dispatch_rows(const FixedPlan& fixed, std::span<const std::vector<SampleRow>> tasks,
                                                const workload::Workload& workload);

}  // namespace braid::planner

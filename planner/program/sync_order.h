#pragma once

#include <span>
#include <vector>

#include "planner/program/batch_key.h"
#include "planner/program/lower.h"

namespace braid::planner {

/// The global batches of a schedule in the order in which every rank syncs them.
///
/// A rank syncs a batch when it has gone backward there and all that come before in this order are synced. So a task's
/// come in turn, and where some rank begins a task's next global batch before another batch has ended there, the task's
/// sync comes before that other's. Beyond that they come as they end on the first stages, on the replica that ends them
/// last; ties by last microbatch, then task. Where replicas contradict each other no order serves, and the step gate is
/// broken whatever is returned.
std::vector<BatchKey> sync_order(const Schedule& schedule);

/// By last microbatch, then task: the order for one replica that goes through its microbatches in turn.
std::vector<BatchKey> plain_sync_order(std::span<const Microbatch> microbatches);

}  // namespace braid::planner

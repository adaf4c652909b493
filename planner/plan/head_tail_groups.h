#pragma once

#include <span>
#include <vector>

#include "planner/plan/plan.h"

namespace braid::planner {

/// Adapters in so many groups of like work: sorted by `lengths`, the mean tokens of their samples, and dealt there and
/// back, so that those with the shortest samples come together with those with the longest (LoRAFusion §5.2, head-tail
/// pairing). Groups by their first adapter.
std::vector<std::vector<TaskIndex>> head_tail_groups(std::span<const double> lengths, std::int64_t groups);

/// Makes those the plan's hTasks, in one bucket.
void group_tasks(std::span<const double> lengths, std::int64_t groups, FixedPlan& fixed);

/// Tokens of each task's samples in the mean, of its first global batches.
std::vector<double> mean_lengths(const workload::SampleIndex& samples, std::size_t tasks);

/// Numbers of groups that are worth a look: all together, two, pairs, and every one by itself.
std::vector<std::int64_t> group_counts_of(std::int64_t tasks);

}  // namespace braid::planner

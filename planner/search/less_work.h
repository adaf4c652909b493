#pragma once

#include <optional>
#include <span>

#include "planner/program/program.h"
#include "workload/sample_index.h"

namespace braid::planner {

/// A workload that asks for less than the one it was made from, with the samples it would have.
struct LessWork {
  workload::Workload workload;
  workload::SampleIndex samples;
};

/// Every max_length at most `most` tokens. Longer samples are dropped where the task says so, else cut: then
/// on_too_long is truncate. Nothing where a task keeps no sample.
std::optional<LessWork> with_max_length(const workload::Workload& workload, const workload::SampleIndex& samples,
                                        std::int64_t most);

/// Every global_batch_size at most `most` samples.
LessWork with_global_batch(const workload::Workload& workload, const workload::SampleIndex& samples, std::int64_t most);

/// Those tasks alone.
LessWork with_tasks(const workload::Workload& workload, const workload::SampleIndex& samples,
                    std::span<const TaskIndex> kept);

/// Tokens that a step of every task is billed.
std::int64_t tokens_of_step(const workload::Workload& workload);

}  // namespace braid::planner

#pragma once

#include <optional>

#include "planner/clock_latency.h"
#include "planner/pipeline_template.h"
#include "planner/policy.h"

namespace braid::planner {

/// How buckets are put in order.
enum class BucketSearch {
  descending,  ///< by first-stage latency, as MuxTune does
  searched     ///< by trying orders (bucket_order.h)
};

/// Orders a plan's buckets by the structured template (MuxTune §3.4.1) for the first global batch of every task, whose
/// shape stands for all: what each clock of a bucket takes and holds on each stage is told by the cost model, and how
/// far ahead the stages launch by the memory that is left beside weights, adapters and scratch. Fills in
/// `fixed.pipeline` and `fixed.order`, and returns the template's makespan; nothing when some clock alone does not fit
/// memory. `fixed` has deployment (like replicas), hTasks, buckets, padding, chunks and storage.
std::optional<Nanoseconds> order_structured(const PolicyInput& input, BucketSearch search, FixedPlan& fixed);

/// What the memory of each stage leaves for stashes, given the most scratch that a pass needs and the largest message;
/// 0 where memory is not limited, negative where nothing is left.
std::vector<Bytes> stash_budget(const PolicyInput& input, const costmodel::Storage& storage,
                                std::span<const costmodel::MicrobatchLoad> loads);

/// The shape of each stage of the first replica.
std::vector<costmodel::StageShape> stage_shapes(const ReplicaShape& replica);

}  // namespace braid::planner

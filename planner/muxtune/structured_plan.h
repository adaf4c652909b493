#pragma once

#include <limits>
#include <optional>

#include "planner/muxtune/laid_out_bucket.h"

namespace braid::planner {

/// How buckets are put in order.
enum class BucketSearch {
  descending,  ///< by first-stage latency, as MuxTune does
  searched     ///< by trying orders (bucket_order.h)
};

/// Orders a plan's buckets by the structured template (MuxTune §3.4.1) for the first global batch of every task, whose
/// shape stands for all: what each clock of a bucket takes and holds on each stage is told by the cost model, and how
/// far ahead the stages launch by the memory that is left beside weights, adapters and scratch. Fills in
/// `fixed.schedule.pipeline` and `fixed.schedule.order`, and returns the template's makespan; nothing when some clock
/// alone does not fit memory, or when no order could be faster than `limit`. `fixed` has deployment (like replicas),
/// hTasks, buckets, padding, chunks and storage.
std::optional<Nanoseconds> order_structured(const PolicyInput& input, BucketSearch search, LaidOutBuckets& laid_out,
                                            FixedPlan& fixed,
                                            Nanoseconds limit = std::numeric_limits<Nanoseconds>::max());

}  // namespace braid::planner

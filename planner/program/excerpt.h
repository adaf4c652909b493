#pragma once

#include "planner/program/program.h"

namespace braid::planner {

/// The Program less all that concerns other microbatches than the first `microbatches` that each replica's first stage
/// computes, and those that share a sample cut into chunks with one of them. A task's global batch of which nothing
/// is left takes no Step. Every instruction that stays keeps its place among the others, so that the excerpt runs as
/// the beginning of the whole does, with nothing under way before or after. Of a Program that stands by itself; what its
/// boundary says of the tasks' next global batches is that of the whole.
Program excerpt(const Program& whole, std::int64_t microbatches);

}  // namespace braid::planner

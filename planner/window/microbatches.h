#pragma once

#include "planner/window/alignment.h"
#include "planner/window/window_steps.h"

namespace braid::planner {

/// Microbatches joined by samples that span them: forward one after another, backward in reverse. Mostly one.
using ChunkGroup = std::vector<Microbatch>;

/// The chunk groups of one hTask's steps of one round, in order, per replica; ids count on from `next_id`, which is
/// moved past them. `steps` are of one hTask, each task at most once.
std::vector<std::vector<ChunkGroup>> chunk_groups(const FixedPlan& fixed, const WindowInput& input,
                                                  std::span<const WindowStep> steps, MicrobatchId& next_id);

/// What the first global batch of every task computes, chunks' own padding told apart.
AlignmentTokens first_step_tokens(const FixedPlan& fixed, const WindowInput& input);

}  // namespace braid::planner

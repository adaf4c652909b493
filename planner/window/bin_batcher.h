#pragma once

#include <functional>

#include "planner/window/batcher.h"

namespace braid::planner {

/// Bins of so many rounds know of one another.
inline constexpr std::int64_t kMergedRounds = 16;
/// A window that a stream of bins may begin with, and `window` is laid out as it is in a whole run.
std::int64_t first_laid_out_for(const FixedPlan& fixed, std::int64_t window);

/// The rows of each hTask's step, dealt over the replicas so that all are about as long busy with what they had so far,
/// in bins of one capacity (LoRAFusion §5.2, algorithm 1), the emptiest last. Where the plan merges, each replica's
/// last one is filled up with rows of what enters next, the next hTask's step or the first of the next round; of no
/// task whose batch before has rows in one of the last microbatches that may be under way, so that the step gate stalls
/// nobody (the bubble lemma: the distance is at least the number of stages, one more than printed). So a round is
/// decided when the next is known. Every so many rounds this begins anew, so that a window can be laid out from there.
/// Pulling throws Error that names the sample where a row is longer than a bin.
/// Pulling throws Failure where a program is not solved in time (packing=solved). `on_packed` is told of each packing.
struct PackedStep {
  std::vector<BinItem> items;
  BinRules rules;
  BinPacking packing;
};
std::unique_ptr<Batcher> make_bin_batcher(const FixedPlan& fixed, const WindowInput& input,
                                          std::function<void(const PackedStep&)> on_packed = {});

}  // namespace braid::planner

#pragma once

#include <cstdint>
#include <span>

namespace braid::costmodel {

/// End-to-end latencies of `microbatches` equal microbatches through stages whose forward and backward pass each take
/// `stages[s]` seconds (frozen layers compute no weight gradient, so that the two are alike), without messages. All
/// three throw for no stages.

/// MuxTune Eq. 4 as printed: 2 Σ L over all stages but the last + 2 C max L. Exact where the last stage is a slowest
/// one; else it counts the bottleneck once more than the pipeline waits for it.
double eq4_seconds(std::span<const double> stages, std::int64_t microbatches);

/// 2 Σ L + 2 (C − 1) max L: exact for GPipe; for 1F1B an upper bound, as stages after the slowest hide behind it.
double gpipe_seconds(std::span<const double> stages, std::int64_t microbatches);

/// 1F1B, exactly, by the recurrence over its order: stage s runs S − s forward passes ahead, then one forward and one
/// backward in turn. Cost: O(C S).
double one_f_one_b_seconds(std::span<const double> stages, std::int64_t microbatches);

}  // namespace braid::costmodel

#pragma once

#include "planner/search/bench.h"

namespace braid::planner {

/// Changes of a plan of bins, one at a time, as long as one makes it faster by its full prediction: capacities a
/// quarter or an eighth larger or smaller, one group of tasks more or fewer, merging or not, messages hidden by more
/// microbatches under way or not. Each is looked at once a round. Plans of other kinds stay as they are. Returns how
/// many plans were judged. `means`: tokens of each task's samples in the mean.
std::int64_t refine_bins(Bench& bench, std::span<const double> means, Candidate& candidate);

}  // namespace braid::planner

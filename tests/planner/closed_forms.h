#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "base/error.h"

// End-to-end latencies of `microbatches` equal microbatches through stages whose forward and backward pass each take
// `stages[s]` seconds (frozen layers compute no weight gradient, so that the two are alike), without messages. All
// three throw for no stages.
namespace braid::planner::testing {

inline double longest_stage(std::span<const double> stages) {
  BRAID_CHECK(!stages.empty(), "a pipeline of no stages");
  return *std::max_element(stages.begin(), stages.end());
}

/// MuxTune Eq. 4 as printed: 2 Σ L over all stages but the last + 2 C max L. Exact where the last stage is a slowest
/// one; else it counts the bottleneck once more than the pipeline waits for it.
inline double eq4_seconds(std::span<const double> stages, std::int64_t microbatches) {
  const double most = longest_stage(stages);
  const double others = std::accumulate(stages.begin(), stages.end() - 1, 0.0);
  return 2 * others + 2 * static_cast<double>(microbatches) * most;
}

/// 2 Σ L + 2 (C − 1) max L: exact for GPipe; for 1F1B an upper bound, as stages after the slowest hide behind it.
inline double gpipe_seconds(std::span<const double> stages, std::int64_t microbatches) {
  const double most = longest_stage(stages);
  return 2 * std::accumulate(stages.begin(), stages.end(), 0.0) + 2 * static_cast<double>(microbatches - 1) * most;
}

struct OrderedPass {
  bool forward = true;
  std::int64_t microbatch = 0;
};

/// What stage `s` of `stages` runs under 1F1B, in order.
inline std::vector<OrderedPass> one_f_one_b_order(std::int64_t s, std::int64_t stages, std::int64_t microbatches) {
  const std::int64_t ahead = std::min(stages - s, microbatches);
  std::vector<OrderedPass> order;
  for (std::int64_t m = 0; m < ahead; ++m) order.push_back({true, m});
  for (std::int64_t m = 0; m < microbatches; ++m) {
    order.push_back({false, m});
    if (m + ahead < microbatches) order.push_back({true, m + ahead});
  }
  return order;
}

/// 1F1B, exactly, by the recurrence over its order: stage s runs S − s forward passes ahead, then one forward and one
/// backward in turn. Cost: O(C S).
inline double one_f_one_b_seconds(std::span<const double> stages, std::int64_t microbatches) {
  longest_stage(stages);
  const auto count = static_cast<std::int64_t>(stages.size());
  constexpr double kNotYet = -1;
  const std::vector<double> none(static_cast<std::size_t>(microbatches), kNotYet);
  std::vector<std::vector<double>> forward(stages.size(), none), backward(stages.size(), none);
  std::vector<std::vector<OrderedPass>> orders;
  for (std::int64_t s = 0; s < count; ++s) orders.push_back(one_f_one_b_order(s, count, microbatches));
  std::vector<std::size_t> next(stages.size(), 0);
  std::vector<double> free_at(stages.size(), 0.0);
  // Stages take turns, each as far as what it waits for is known.
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      while (next[s] < orders[s].size()) {
        const OrderedPass pass = orders[s][next[s]];
        const auto m = static_cast<std::size_t>(pass.microbatch);
        const bool first = s == 0, last = s + 1 == stages.size();
        const double ready =
            pass.forward ? (first ? 0 : forward[s - 1][m]) : (last ? forward[s][m] : backward[s + 1][m]);
        if (ready == kNotYet) break;
        free_at[s] = std::max(free_at[s], ready) + stages[s];
        (pass.forward ? forward : backward)[s][m] = free_at[s];
        ++next[s];
        moved = true;
      }
    }
  }
  return *std::max_element(free_at.begin(), free_at.end());
}

}  // namespace braid::planner::testing

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planner/muxtune/exact_grouping.h"

namespace braid::planner {

/// hTasks by bucket.
struct Grouping {
  std::vector<std::vector<std::int32_t>> buckets;  ///< by latency descending, then by lowest hTask; each ascending
  double variance_sum = 0;                         ///< Σ over buckets of (latency − mean)², in square seconds
  bool exact = false;                              ///< no grouping has less, but for rounding
};

/// Up to this many hTasks the best grouping is found.
inline constexpr std::int32_t kExactlyGrouped = 12;

/// hTasks into exactly so many buckets, none empty, that the first-stage latencies of the buckets, sums of their
/// hTasks', vary least (MuxTune §3.4, Eq. 7).
///
/// Exact for at most kExactlyGrouped hTasks (O(3^N) for each number of buckets up to the largest asked for, under a
/// millisecond), else by group_htasks_by_exchange.
class TaskGroupings {
 public:
  /// Latencies are finite and not negative.
  explicit TaskGroupings(std::vector<double> first_stage_seconds);

  /// Throws Error for fewer than one bucket and for more buckets than hTasks.
  Grouping into(std::int32_t buckets);

 private:
  std::vector<double> seconds_;
  std::optional<ExactGroupings> exact_;
};

/// One of them.
Grouping group_htasks(std::span<const double> first_stage_seconds, std::int32_t buckets);

/// The same for any number of hTasks, not always with the least variance: starts from the longest first, each into the
/// least bucket, and from differencing (Karmarkar & Karp 1982); moves and swaps hTasks between two buckets until that
/// helps no more; keeps the better. Exact only where the variance comes out 0.
Grouping group_htasks_by_exchange(std::span<const double> first_stage_seconds, std::int32_t buckets);

}  // namespace braid::planner

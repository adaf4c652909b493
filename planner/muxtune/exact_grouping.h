#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace braid::planner {

/// For every number of buckets the grouping of a few hTasks whose latencies vary least (MuxTune Eq. 7). With the sum of
/// latencies and the number of buckets given, that is the one with the least sum of squares, so that one dynamic
/// program over sets serves all numbers: O(3^N) for each number up to the largest asked for.
class ExactGroupings {
 public:
  /// Up to 20 latencies in seconds, one or more.
  explicit ExactGroupings(std::span<const double> seconds);

  /// Buckets of hTasks, none empty, in no order. `buckets`: 1 to the number of hTasks.
  std::vector<std::vector<std::int32_t>> into(std::int32_t buckets);

 private:
  /// A set of hTasks is a bit mask.
  using Set = std::uint32_t;
  /// Of every set that has not hTask 0, as so many buckets.
  struct Level {
    std::vector<double> squares;  ///< the least sum; infinite for sets with fewer hTasks
    std::vector<Set> bucket;      ///< the one that holds the lowest hTask
  };
  struct Split {
    double squares;
    Set bucket;
  };

  /// The best bucket with the set's lowest hTask, beside the rest as `others` has it.
  Split best_split(Set set, const Level& others) const;
  const Level& level(std::size_t buckets);

  std::vector<double> squares_;  ///< of every set, as one bucket
  std::vector<Level> levels_;    ///< of 1, 2, ... buckets
};

}  // namespace braid::planner

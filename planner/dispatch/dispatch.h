#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace braid::planner {

/// What a replica takes for microbatches of like sequences (LobRA appendix D).
struct ReplicaSpeed {
  /// A full microbatch of sequences of one padded length.
  struct Full {
    std::int64_t rows = 0;
    double seconds = 0;  ///< forward and backward on the replica's slowest stage
    bool operator==(const Full&) const = default;
  };
  std::vector<Full> full;   ///< by padded length, in intervals; longer sequences than the last do not fit
  std::int64_t stages = 1;  ///< that a microbatch goes through
  bool operator==(const ReplicaSpeed&) const = default;

  double seconds_a_row(std::size_t interval) const {
    return full[interval].seconds / static_cast<double>(full[interval].rows);
  }
};

/// A step's sequences by length range: the interval that each range ends with, and how many sequences it holds.
struct RangeLoad {
  std::size_t interval = 0;
  std::int64_t sequences = 0;
};

/// How many sequences of each range each replica takes, and how long the slowest of them does.
struct Dispatched {
  std::vector<std::vector<std::int64_t>> counts;  ///< per replica, per range
  double seconds = 0;
  double bound = 0;  ///< no dispatch is faster than this
};

/// What a replica takes for so many sequences of each range: its microbatches one after another, one that is not full
/// as its share, and as often again as it has further stages the longest of them.
double replica_seconds(const ReplicaSpeed& replica, std::span<const RangeLoad> ranges,
                       std::span<const std::int64_t> counts);

/// Every sequence to one replica that holds its length, so that the slowest replica is as fast as can be found (LobRA
/// Eq. 3): longest ranges first, each sequence to the replica that has then taken the least time; then sequences leave
/// the slowest replica, alone or in exchange for others, as long as that makes it faster. Deterministic. The bound is
/// that of fractional sequences without pipelines' ends. Some replica must hold each range that has sequences.
Dispatched dispatch_balanced(std::span<const ReplicaSpeed> replicas, std::span<const RangeLoad> ranges);

/// Every range to the replicas with the least GPU-seconds a sequence of it, evenly (LobRA §3, Figure 4c).
/// `gpus`: of each replica.
Dispatched dispatch_by_length(std::span<const ReplicaSpeed> replicas, std::span<const std::int64_t> gpus,
                              std::span<const RangeLoad> ranges);

}  // namespace braid::planner

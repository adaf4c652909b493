#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace braid::planner {

/// Intervals of sequence lengths; a sequence is padded to the end of its own (LobRA §4.3, "buckets" there).
struct LengthRanges {
  std::vector<std::int64_t> ends;  ///< tokens, ascending: a range holds what is longer than the end before
  std::int64_t padding = 0;        ///< tokens of all sequences together

  /// The place of the range that holds such a length, which must not be above the last end.
  std::size_t of(std::int64_t length) const;
};

/// The ranges, at most so many and all ending at multiples of `interval` tokens, with which the sequences are padded
/// the least (LobRA Eq. 4); the last ends where the longest sequence does. Of like ones those with the earlier ends.
/// Takes O(B + R U²) for B sequences of U unlike intervals; `interval` and `most` are positive, every length is.
LengthRanges best_ranges(std::span<const std::int64_t> lengths, std::int64_t interval, std::int64_t most);

/// The first interval that holds such a length, counted from 0.
inline std::size_t interval_of(std::int64_t length, std::int64_t interval) {
  return static_cast<std::size_t>((length + interval - 1) / interval - 1);
}

}  // namespace braid::planner

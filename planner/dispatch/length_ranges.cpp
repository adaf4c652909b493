#include "planner/dispatch/length_ranges.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/error.h"

namespace braid::planner {
namespace {

/// The intervals that hold any sequence, ascending; sums over all up to each.
struct Intervals {
  std::vector<std::int64_t> ends, count_before = {0}, tokens_before = {0};  // tokens: of sequences padded to their ends

  std::size_t size() const { return ends.size(); }
  /// What padding sequences of intervals [first, last] to the end of the last adds.
  std::int64_t padding(std::size_t first, std::size_t last) const {
    const std::int64_t count = count_before[last + 1] - count_before[first];
    return count * ends[last] - (tokens_before[last + 1] - tokens_before[first]);
  }
};

}  // namespace

std::size_t LengthRanges::of(std::int64_t length) const {
  const auto range = std::lower_bound(ends.begin(), ends.end(), length);
  BRAID_CHECK(range != ends.end(), "a sequence of {} tokens is longer than all ranges", length);
  return static_cast<std::size_t>(range - ends.begin());
}

LengthRanges best_ranges(std::span<const std::int64_t> lengths, std::int64_t interval, std::int64_t most) {
  BRAID_CHECK(interval > 0 && most > 0, "{} ranges of intervals of {} tokens", most, interval);
  LengthRanges found;
  std::map<std::int64_t, std::int64_t> counts;
  for (const std::int64_t length : lengths) {
    BRAID_CHECK(length > 0, "a sequence of {} tokens", length);
    const std::int64_t end = (static_cast<std::int64_t>(interval_of(length, interval)) + 1) * interval;
    ++counts[end];
    found.padding += end - length;
  }
  Intervals intervals;
  for (const auto& [end, count] : counts) {
    intervals.ends.push_back(end);
    intervals.count_before.push_back(intervals.count_before.back() + count);
    intervals.tokens_before.push_back(intervals.tokens_before.back() + count * end);
  }
  if (intervals.size() == 0) return found;
  const std::size_t ranges = std::min(static_cast<std::size_t>(most), intervals.size());
  constexpr std::int64_t kUnreached = std::numeric_limits<std::int64_t>::max() / 2;
  // least[r][k]: of the first k intervals in r + 1 ranges; from[r][k]: the first interval of the last of these.
  std::vector<std::vector<std::int64_t>> least(ranges, std::vector<std::int64_t>(intervals.size() + 1, kUnreached));
  std::vector<std::vector<std::size_t>> from(ranges, std::vector<std::size_t>(intervals.size() + 1, 0));
  for (std::size_t k = 1; k <= intervals.size(); ++k) least[0][k] = intervals.padding(0, k - 1);
  for (std::size_t r = 1; r < ranges; ++r) {
    for (std::size_t k = r + 1; k <= intervals.size(); ++k) {
      for (std::size_t first = r; first < k; ++first) {
        const std::int64_t padding = least[r - 1][first] + intervals.padding(first, k - 1);
        if (padding >= least[r][k]) continue;
        least[r][k] = padding;
        from[r][k] = first;
      }
    }
  }
  found.padding += least[ranges - 1][intervals.size()];
  for (std::size_t r = ranges, k = intervals.size(); r-- > 0; k = from[r][k])
    found.ends.push_back(intervals.ends[k - 1]);
  std::reverse(found.ends.begin(), found.ends.end());
  return found;
}

}  // namespace braid::planner

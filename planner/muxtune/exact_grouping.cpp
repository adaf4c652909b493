#include "planner/muxtune/exact_grouping.h"

#include <bit>
#include <limits>
#include <numeric>

#include "base/error.h"

namespace braid::planner {

ExactGroupings::ExactGroupings(std::span<const double> seconds) : squares_(std::size_t{1} << seconds.size(), 0) {
  BRAID_CHECK(!seconds.empty() && seconds.size() <= 20, "{} hTasks are grouped by search", seconds.size());
  for (Set set = 1; set < squares_.size(); ++set)
    squares_[set] = squares_[set & (set - 1)] + seconds[static_cast<std::size_t>(std::countr_zero(set))];
  for (double& here : squares_) here *= here;
}

std::vector<std::vector<std::int32_t>> ExactGroupings::into(std::int32_t buckets) {
  std::vector<std::vector<std::int32_t>> result;
  Set left = static_cast<Set>(squares_.size()) - 1;
  for (auto count = static_cast<std::size_t>(buckets); count > 0; --count) {
    Set bucket = left;
    if (count > 1) {
      const bool is_whole = (left & 1) != 0;
      bucket = is_whole ? best_split(left, level(count - 1)).bucket : level(count).bucket[left];
    }
    std::vector<std::int32_t>& members = result.emplace_back();
    for (Set set = bucket; set != 0; set &= set - 1) members.push_back(std::countr_zero(set));
    left ^= bucket;
  }
  return result;
}

ExactGroupings::Split ExactGroupings::best_split(Set set, const Level& others) const {
  Split best = {std::numeric_limits<double>::infinity(), 0};
  const Set above = set & (set - 1);
  for (Set rest = above; rest != 0; rest = (rest - 1) & above) {
    const double squares = squares_[set ^ rest] + others.squares[rest];
    if (squares < best.squares) best = {squares, set ^ rest};
  }
  return best;
}

const ExactGroupings::Level& ExactGroupings::level(std::size_t buckets) {
  if (levels_.empty()) {
    levels_.push_back({squares_, std::vector<Set>(squares_.size())});
    std::iota(levels_.front().bucket.begin(), levels_.front().bucket.end(), Set{0});
  }
  while (levels_.size() < buckets) {
    Level next = {std::vector<double>(squares_.size(), std::numeric_limits<double>::infinity()),
                  std::vector<Set>(squares_.size(), 0)};
    const std::size_t least_size = levels_.size() + 1;
    for (Set set = 2; set < squares_.size(); set += 2) {
      if (static_cast<std::size_t>(std::popcount(set)) < least_size) continue;
      const Split split = best_split(set, levels_.back());
      next.squares[set] = split.squares, next.bucket[set] = split.bucket;
    }
    levels_.push_back(std::move(next));
  }
  return levels_[buckets - 1];
}

}  // namespace braid::planner

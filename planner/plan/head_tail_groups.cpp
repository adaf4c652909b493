#include "planner/plan/head_tail_groups.h"

#include <algorithm>
#include <numeric>

namespace braid::planner {

std::vector<std::vector<TaskIndex>> head_tail_groups(std::span<const double> lengths, std::int64_t groups) {
  std::vector<TaskIndex> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](TaskIndex a, TaskIndex b) {
    return lengths[static_cast<std::size_t>(a)] < lengths[static_cast<std::size_t>(b)];
  });
  const auto count = static_cast<std::size_t>(groups);
  std::vector<std::vector<TaskIndex>> dealt(count);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t place = i % count;
    dealt[i / count % 2 == 0 ? place : count - 1 - place].push_back(order[i]);
  }
  for (std::vector<TaskIndex>& group : dealt) std::sort(group.begin(), group.end());
  std::erase_if(dealt, [](const std::vector<TaskIndex>& group) { return group.empty(); });
  std::sort(dealt.begin(), dealt.end());
  return dealt;
}

std::vector<std::int64_t> group_counts_of(std::int64_t tasks) {
  std::vector<std::int64_t> counts = {1};
  for (const std::int64_t count : {std::int64_t{2}, (tasks + 1) / 2, tasks}) {
    if (count > counts.back() && count <= tasks) counts.push_back(count);
  }
  return counts;
}

}  // namespace braid::planner

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

void group_tasks(std::span<const double> lengths, std::int64_t groups, FixedPlan& fixed) {
  fixed.htasks = head_tail_groups(lengths, groups);
  fixed.buckets.assign(1, std::vector<std::int32_t>(fixed.htasks.size()));
  std::iota(fixed.buckets[0].begin(), fixed.buckets[0].end(), 0);
}

std::vector<double> mean_lengths(const workload::SampleIndex& samples, std::size_t tasks) {
  constexpr std::int64_t kBatches = 16;
  std::vector<double> means;
  for (std::size_t t = 0; t < tasks; ++t) {
    const auto task = static_cast<TaskIndex>(t);
    double tokens = 0, count = 0;
    for (std::int64_t batch = 0; batch < std::min(kBatches, samples.batches_per_epoch(task)); ++batch) {
      for (const workload::SampleRef& sample : samples.global_batch(task, batch))
        tokens += static_cast<double>(sample.tokens), ++count;
    }
    means.push_back(tokens / count);
  }
  return means;
}

std::vector<std::int64_t> group_counts_of(std::int64_t tasks) {
  std::vector<std::int64_t> counts = {1};
  for (const std::int64_t count : {std::int64_t{2}, (tasks + 1) / 2, tasks}) {
    if (count > counts.back() && count <= tasks) counts.push_back(count);
  }
  return counts;
}

}  // namespace braid::planner

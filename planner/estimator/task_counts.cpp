#include "planner/estimator/task_counts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace braid::planner {

CountedTasks counted_tasks(const PlanningInput& kinds, std::span<const std::int32_t> counts, bool drawn) {
  workload::Workload workload;
  workload.file = kinds.workload.file;
  workload.backbone_reference = kinds.workload.backbone_reference;
  workload.backbone_folder = kinds.workload.backbone_folder;
  workload.backbone = kinds.workload.backbone;
  std::vector<std::vector<workload::SampleSize>> sizes;
  std::vector<std::int32_t> kind_of;
  workload.tasks.reserve(static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), 0)));
  for (std::size_t kind = 0; kind < counts.size(); ++kind) {
    for (std::int32_t copy = 0; copy < counts[kind]; ++copy) {
      workload::Task& task = workload.tasks.emplace_back(kinds.workload.tasks[kind]);
      task.name = fmt::format("{}-{}", task.name, copy);
      task.seed = static_cast<std::uint64_t>(copy);
      kind_of.push_back(static_cast<std::int32_t>(kind));
      if (drawn) {
        sizes.push_back(workload::sample_sizes(task));
        continue;
      }
      const auto& total = kinds.samples.total(static_cast<int>(kind));
      const std::int64_t samples = kinds.samples.samples(static_cast<int>(kind));
      const auto mean = [&](std::int64_t sum) {
        return std::max<std::int64_t>(1, std::llround(static_cast<double>(sum) / static_cast<double>(samples)));
      };
      sizes.emplace_back(static_cast<std::size_t>(task.global_batch_size),
                         workload::SampleSize{mean(total.tokens), mean(total.supervised),
                                              task.objective.pairs() ? mean(total.chosen) : 0});
    }
  }
  workload::SampleIndex index(workload.tasks, std::move(sizes));
  return {std::move(workload), std::move(index), std::move(kind_of)};
}

std::vector<std::vector<std::int32_t>> telling_sets(std::size_t kinds, std::int32_t most_tasks) {
  std::vector<std::vector<std::int32_t>> sets;
  for (std::int32_t tasks = 2; tasks / 2 < most_tasks; tasks *= 2) {
    const auto count = static_cast<std::size_t>(std::min(tasks, most_tasks));
    std::vector<std::int32_t>& counts = sets.emplace_back(kinds, 0);
    for (std::size_t t = 0; t < count; ++t) ++counts[t * kinds / count];
  }
  return sets;
}

}  // namespace braid::planner

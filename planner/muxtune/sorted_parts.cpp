#include "planner/muxtune/sorted_parts.h"

#include <algorithm>

#include "planner/plan/stash_budget.h"
#include "planner/plan/task_load.h"

namespace braid::planner {
namespace {

using costmodel::MicrobatchLoad;

MicrobatchLoad part_of(const PolicyInput& input, const FixedPlan& fixed, TaskIndex index) {
  MicrobatchLoad load = task_load(input, index, fixed.batching.padding, fixed.adapter_kernels);
  const bool packs = fixed.batching.chunk_size > 0 || fixed.batching.pack_length > 0;
  if (!packs) return load;
  const auto rows = static_cast<std::int64_t>(load.sequences.size());
  const std::int64_t samples = input.workload.tasks[static_cast<std::size_t>(index)].global_batch_size;
  const std::int64_t parts = input.microbatches * static_cast<std::int64_t>(input.deployment.size());
  const auto mean = [&](std::int64_t of_rows) { return (of_rows / rows * samples + parts - 1) / parts; };
  load.tokens = mean(load.tokens);
  load.scored = mean(load.scored);
  load.tasks.front().tokens = load.tokens;
  return load;
}

}  // namespace

SortedParts sorted_parts(const PolicyInput& input, const FixedPlan& fixed) {
  std::vector<MicrobatchLoad> loads;
  std::vector<std::pair<std::int64_t, TaskIndex>> order;
  for (TaskIndex task = 0; task < input.task_count(); ++task) {
    loads.push_back(part_of(input, fixed, task));
    order.emplace_back(loads.back().tokens, task);
  }
  std::sort(order.begin(), order.end());
  SortedParts sorted;
  for (const auto& [tokens, task] : order) {
    sorted.tasks.push_back(task);
    sorted.loads.push_back(std::move(loads[static_cast<std::size_t>(task)]));
  }
  return sorted;
}

FittingRuns::FittingRuns(const PolicyInput& input, const costmodel::Storage& storage,
                         std::span<const costmodel::StageShape> stages, std::span<const MicrobatchLoad> loads,
                         bool orchestrated) {
  const StashBudget budgets(input, storage);
  const auto run_fits = [&](std::int32_t first, std::int32_t last) {
    if (input.capacity <= 0) return true;
    const MicrobatchLoad run =
        merge(loads.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first + 1)));
    const std::vector<Bytes> budget =
        budgets.with(scratch_of(input.workload.backbone, stages, run, storage),
                     run.tokens * costmodel::message_bytes_per_token(input.workload.backbone, storage));
    for (std::size_t s = 0; s < stages.size(); ++s) {
      if (orchestrated && s > 0 && stages[s] == stages[s - 1]) continue;  // with a budget alike, too
      const std::int64_t under_way = std::min(input.microbatches, static_cast<std::int64_t>(stages.size() - s));
      const Bytes stash = costmodel::stash_bytes(input.workload.backbone, stages[s], run, storage);
      if ((orchestrated ? 1 : under_way) * stash > budget[s]) return false;
    }
    return true;
  };
  const auto count = static_cast<std::int32_t>(loads.size());
  std::int32_t last = -1;
  // Mostly everything fits.
  if (run_fits(0, count - 1)) last = count - 1;
  for (std::int32_t first = 0; first < count; ++first) {
    last = std::max(last, first - 1);
    while (last + 1 < count && run_fits(first, last + 1)) ++last;
    longest_.push_back(last);
  }
}

bool FittingRuns::fit_alone() const {
  for (std::size_t task = 0; task < longest_.size(); ++task) {
    if (longest_[task] < static_cast<std::int32_t>(task)) return false;
  }
  return true;
}

}  // namespace braid::planner

#include "planner/search/less_work.h"

#include <algorithm>

namespace braid::planner {
namespace {

using workload::SampleSize;

std::vector<std::vector<SampleSize>> sizes_of(const workload::Workload& workload,
                                              const workload::SampleIndex& samples) {
  std::vector<std::vector<SampleSize>> sizes;
  for (std::size_t task = 0; task < workload.tasks.size(); ++task)
    sizes.push_back(samples.sizes(static_cast<int>(task)));
  return sizes;
}

/// Of a cut sample all that is left may be supervised. False where the reader of workload files would refuse the task.
bool shorten(workload::Task& task, std::int64_t most, std::vector<SampleSize>& sizes) {
  task.max_length = most;
  // A distribution's mean is to be at most its max, which is max_length where it is not given.
  if (task.lengths && task.lengths->mean > static_cast<double>(most)) return false;
  const auto too_long = [&](const SampleSize& size) { return std::max(size.tokens - size.chosen, size.chosen) > most; };
  if (task.on_too_long == workload::OnTooLong::drop) {
    std::erase_if(sizes, too_long);
    return !sizes.empty();
  }
  const bool may_be_longer = task.lengths && task.lengths->max > most;
  if (!may_be_longer && std::none_of(sizes.begin(), sizes.end(), too_long)) return true;
  task.on_too_long = workload::OnTooLong::truncate;
  for (SampleSize& size : sizes) {
    const std::int64_t chosen = std::min(size.chosen, most);
    const std::int64_t tokens = chosen + std::min(size.tokens - size.chosen, most);
    size = {tokens, std::min(size.supervised, tokens - task.objective.sequences()), chosen};
  }
  return true;
}

}  // namespace

std::optional<LessWork> with_max_length(const workload::Workload& workload, const workload::SampleIndex& samples,
                                        std::int64_t most) {
  workload::Workload less = workload;
  std::vector<std::vector<SampleSize>> sizes = sizes_of(workload, samples);
  for (std::size_t task = 0; task < less.tasks.size(); ++task) {
    if (less.tasks[task].max_length > most && !shorten(less.tasks[task], most, sizes[task])) return std::nullopt;
  }
  workload::SampleIndex kept(less.tasks, std::move(sizes));
  return LessWork{std::move(less), std::move(kept)};
}

LessWork with_global_batch(const workload::Workload& workload, const workload::SampleIndex& samples,
                           std::int64_t most) {
  workload::Workload less = workload;
  for (workload::Task& task : less.tasks) task.global_batch_size = std::min(task.global_batch_size, most);
  workload::SampleIndex kept(less.tasks, sizes_of(workload, samples));
  return {std::move(less), std::move(kept)};
}

LessWork with_tasks(const workload::Workload& workload, const workload::SampleIndex& samples,
                    std::span<const TaskIndex> kept) {
  workload::Workload less = workload;
  less.tasks.clear();
  std::vector<std::vector<SampleSize>> sizes;
  for (const TaskIndex task : kept) {
    less.tasks.push_back(workload.tasks[static_cast<std::size_t>(task)]);
    sizes.push_back(samples.sizes(task));
  }
  workload::SampleIndex theirs(less.tasks, std::move(sizes));
  return {std::move(less), std::move(theirs)};
}

std::int64_t tokens_of_step(const workload::Workload& workload) {
  std::int64_t tokens = 0;
  for (const workload::Task& task : workload.tasks) tokens += task.global_batch_size * task.sample_tokens();
  return tokens;
}

}  // namespace braid::planner

#include "planner/plan/task_load.h"

namespace braid::planner {

using costmodel::MicrobatchLoad;

MicrobatchLoad task_load(const PolicyInput& input, TaskIndex index, Padding padding,
                         costmodel::AdapterKernels kernels) {
  const workload::Task& task = input.workload.tasks[static_cast<std::size_t>(index)];
  const std::int64_t parts = input.microbatches * static_cast<std::int64_t>(input.deployment.size());
  const std::int64_t rows = (task.global_batch_size + parts - 1) / parts;
  const workload::SampleSize& total = input.samples.total(index);
  const std::int64_t samples = input.samples.samples(index);
  const std::int64_t length = padding == Padding::none ? (total.tokens + samples - 1) / samples : task.sample_tokens();
  MicrobatchLoad load;
  load.kernels = kernels;
  load.tokens = rows * length;
  load.scored = rows * ((total.supervised + samples - 1) / samples);
  const std::int64_t sequences = task.objective.sequences();
  load.sequences.assign(static_cast<std::size_t>(rows * sequences), {0, (length + sequences - 1) / sequences});
  load.tasks = {{task.adapter, load.tokens}};
  return load;
}

MicrobatchLoad merge(std::span<const MicrobatchLoad> loads) {
  MicrobatchLoad merged;
  for (const MicrobatchLoad& load : loads) {
    merged.tokens += load.tokens;
    merged.scored += load.scored;
    merged.sequences.insert(merged.sequences.end(), load.sequences.begin(), load.sequences.end());
    merged.tasks.insert(merged.tasks.end(), load.tasks.begin(), load.tasks.end());
    merged.kernels = load.kernels;
  }
  return merged;
}

}  // namespace braid::planner

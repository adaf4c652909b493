#include "planner/window/window.h"

#include <algorithm>
#include <set>

#include "planner/window/batcher.h"

namespace braid::planner {

std::vector<costmodel::AdapterShape> adapters_of(const workload::Workload& workload) {
  std::vector<costmodel::AdapterShape> adapters;
  for (const workload::Task& task : workload.tasks) adapters.push_back(task.adapter);
  return adapters;
}

PassStyle pass_style(const FixedPlan& fixed, const workload::Workload& workload) {
  return {adapters_of(workload), fixed.adapter_kernels, fixed.shards_weights, fixed.schedule.launch_rule};
}

MemoryContext memory_context(const FixedPlan& fixed, const workload::Workload& workload) {
  const auto replicas = static_cast<std::int64_t>(fixed.deployment.size());
  const std::set<TaskIndex> planned = fixed.tasks();
  std::vector<costmodel::AdapterShape> adapters = adapters_of(workload);
  for (std::size_t task = 0; task < adapters.size(); ++task)
    if (!planned.empty() && !planned.contains(static_cast<TaskIndex>(task))) adapters[task] = {};
  return {workload.backbone,
          std::move(adapters),
          fixed.storage,
          fixed.backbone_copies,
          fixed.shards_weights ? replicas : 1,
          workload.reproducible};
}

std::int64_t largest_microbatch(const FixedPlan& fixed, const WindowInput& input, std::int64_t window) {
  std::int64_t largest = 0;
  const std::vector<WindowStep> steps = window_steps(fixed, input, window);
  // As full as bins can be, or with all that there is.
  if (fixed.batching.bins) {
    for (const WindowStep& step : steps) {
      for (const workload::SampleRef& sample : input.samples.global_batch(step.task, step.global_batch))
        largest += sample.tokens;
    }
    return std::min(largest, fixed.batching.bins->capacity);
  }
  const std::unique_ptr<Batcher> batcher = make_batcher(fixed, input);
  for (std::vector<WindowStep>& round : rounds_of(steps)) batcher->push(window, std::move(round));
  batcher->end();
  while (const std::optional<Round> round = batcher->pull()) {
    for (const Microbatch& microbatch : microbatches_of(round->htasks))
      largest = std::max(largest, microbatch.computed_tokens());
  }
  return largest;
}

VerifyContext verify_context(const FixedPlan& fixed, const WindowInput& input, Bytes capacity) {
  VerifyContext context;
  context.expected = [&samples = input.samples](TaskIndex task, std::int64_t batch) {
    std::vector<ExpectedSample> expected;
    for (const workload::SampleRef& sample : samples.global_batch(task, batch))
      expected.push_back({sample.sample, static_cast<std::int32_t>(sample.tokens)});
    return expected;
  };
  for (const workload::Task& task : input.workload.tasks) context.tasks.push_back({task.optimizer.max_grad_norm > 0});
  context.memory = memory_context(fixed, input.workload);
  context.capacity = capacity;
  return context;
}

}  // namespace braid::planner

#include "planner/window/window.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "planner/window/window_rounds.h"

namespace braid::planner {
std::vector<costmodel::AdapterShape> adapters_of(const workload::Workload& workload) {
  std::vector<costmodel::AdapterShape> adapters;
  for (const workload::Task& task : workload.tasks) adapters.push_back(task.adapter);
  return adapters;
}

PassStyle pass_style(const FixedPlan& fixed, const workload::Workload& workload) {
  return {adapters_of(workload), fixed.adapter_kernels, fixed.shards_weights, fixed.launch_rule};
}

MemoryContext memory_context(const FixedPlan& fixed, const workload::Workload& workload) {
  const auto replicas = static_cast<std::int64_t>(fixed.deployment.size());
  return {workload.backbone, adapters_of(workload), fixed.storage, fixed.backbone_copies,
          fixed.shards_weights ? replicas : 1};
}

std::int64_t largest_microbatch(const FixedPlan& fixed, const WindowInput& input, std::int64_t window) {
  std::int64_t largest = 0;
  WindowRounds rounds(fixed, input, window);
  while (!rounds.done()) {
    for (const Microbatch& microbatch : microbatches_of(rounds.next().htasks))
      largest = std::max(largest, microbatch.computed_tokens());
  }
  return largest;
}

namespace {

/// What makes a window's memory: the larger, the fuller.
struct WindowSize {
  std::int64_t tokens = 0;   ///< of all its rows
  std::int64_t scored = 0;   ///< of the microbatch that scores the most
  std::int64_t last = 0;     ///< of a global batch's last one, which GPipe computes when all others are held
  std::int64_t largest = 0;  ///< computed tokens of the largest microbatch
};

/// Told by the samples alone where rows are padded, as microbatches are then of one size. Rows are split as
/// align_padded does; packs mix them, which is not looked at.
WindowSize size_of(const FixedPlan& fixed, const WindowInput& input, std::int64_t window) {
  WindowSize size;
  const auto parts = static_cast<std::size_t>(fixed.microbatches) * fixed.deployment.size();
  std::map<std::pair<std::int32_t, std::int64_t>, std::vector<std::int64_t>> scored;  // by hTask and round, then part
  for (const WindowStep& step : window_steps(fixed, input, window)) {
    std::vector<std::int64_t>& mine = scored[{step.htask, step.round}];
    mine.resize(parts, 0);
    const std::vector<workload::SampleRef> samples = input.samples.global_batch(step.task, step.global_batch);
    for (std::size_t part = 0; part < parts; ++part) {
      for (std::size_t i = part * samples.size() / parts; i < (part + 1) * samples.size() / parts; ++i) {
        size.tokens += samples[i].tokens;
        mine[part] += samples[i].supervised;
      }
      size.scored = std::max(size.scored, mine[part]);
    }
  }
  for (const auto& [round, mine] : scored) {
    const auto last = std::find_if(mine.rbegin(), mine.rend(), [](std::int64_t rows) { return rows > 0; });
    if (last != mine.rend()) size.last = std::max(size.last, *last);
  }
  if (fixed.padding != Padding::none) return size;
  size.largest = largest_microbatch(fixed, input, window);
  return size;
}

}  // namespace

std::vector<std::int64_t> telling_windows(const FixedPlan& fixed, const WindowInput& input) {
  std::set<std::int64_t> windows;
  const auto scan = [&](std::int64_t first, std::int64_t count) {
    if (count <= 0) return;
    windows.insert(first);
    constexpr std::int64_t WindowSize::*kMeasures[] = {&WindowSize::tokens, &WindowSize::scored, &WindowSize::last,
                                                       &WindowSize::largest};
    WindowSize most;
    std::int64_t heaviest[std::size(kMeasures)] = {first, first, first, first};
    const std::int64_t looks = std::min(count, kScannedWindows);
    for (std::int64_t look = 0; look < looks; ++look) {
      const std::int64_t window =
          first + static_cast<std::int64_t>(static_cast<double>(look) / static_cast<double>(looks) *
                                            static_cast<double>(count));
      const WindowSize size = size_of(fixed, input, window);
      for (std::size_t m = 0; m < std::size(kMeasures); ++m) {
        if (size.*kMeasures[m] > most.*kMeasures[m]) most.*kMeasures[m] = size.*kMeasures[m], heaviest[m] = window;
      }
    }
    windows.insert(std::begin(heaviest), std::end(heaviest));
  };
  std::int64_t first = 0;
  for (const Admission& admission : course_of(fixed, input)) {
    scan(first, admission.windows);
    first += admission.windows;
  }
  return {windows.begin(), windows.end()};
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

#include "exec/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "exec/optimizer.h"
#include "planner/predict.h"
#include "planner/program_stream.h"

namespace braid::exec {

using planner::TaskIndex;

namespace {

/// Completes each step's report with what the other ranks have of it: the loss and the squared norm of each layer come
/// from one rank each, so that the sums are exact. Returns whether any rank was asked to stop.
bool exchange(RunReport& report, bool stop, Communicator& communicator) {
  std::vector<double> numbers = {stop ? 1.0 : 0.0};
  for (const auto& [key, step] : report.steps) {
    numbers.push_back(step.loss);
    numbers.push_back(step.diverged ? 1 : 0);
    numbers.insert(numbers.end(), step.squared_norms.begin(), step.squared_norms.end());
  }
  communicator.sum(numbers);
  auto next = numbers.begin() + 1;
  for (auto& [key, step] : report.steps) {
    step.loss = *next++;
    step.diverged = *next++ > 0;
    for (double& norm : step.squared_norms) norm = *next++;
  }
  return numbers.front() > 0;
}

/// Before clipping. Added in layer order, so that it does not matter how layers lie on stages.
double gradient_norm(const StepReport& step) {
  return std::sqrt(std::accumulate(step.squared_norms.begin(), step.squared_norms.end(), 0.0));
}

StepMetrics metrics_of(const planner::WindowStep& step, const StepReport& taken, const workload::Workload& workload,
                       const workload::SampleIndex& samples, double seconds) {
  const workload::Optimizer& optimizer = workload.tasks[static_cast<std::size_t>(step.task)].optimizer;
  std::int64_t tokens = 0;
  for (const workload::SampleRef& sample : samples.global_batch(step.task, step.global_batch)) tokens += sample.tokens;
  return {step.task,
          step.global_batch + 1,
          taken.loss,
          learning_rate(optimizer, step.global_batch, samples.steps(step.task)),
          gradient_norm(taken),
          tokens,
          seconds};
}

template <typename T>
std::string to_bytes(const std::vector<T>& items) {
  return {reinterpret_cast<const char*>(items.data()), items.size() * sizeof(T)};
}

template <typename T>
void append_from_bytes(const std::string& bytes, std::vector<T>& items) {
  const std::size_t before = items.size();
  items.resize(before + bytes.size() / sizeof(T));
  std::memcpy(items.data() + before, bytes.data(), bytes.size());
}

planner::Timeline gather_timeline(const RunReport& mine, Communicator& communicator) {
  planner::Timeline timeline;
  for (const std::string& part : communicator.gather(to_bytes(mine.events))) append_from_bytes(part, timeline.events);
  for (const std::string& part : communicator.gather(to_bytes(mine.memory))) append_from_bytes(part, timeline.memory);
  const Nanoseconds begin = timeline.begin();
  for (planner::MemorySample& sample : timeline.memory) sample.time -= begin;
  for (planner::Event& event : timeline.events) {
    event.start -= begin;
    event.end -= begin;
  }
  return timeline;
}

/// From the first instruction's start on any rank to the last one's end.
double window_seconds(const RunReport& report, Communicator& communicator) {
  planner::Timeline mine{report.events, {}};
  const std::vector<Nanoseconds> span = {mine.begin(), mine.end()};
  std::vector<Nanoseconds> all;
  for (const std::string& part : communicator.gather(to_bytes(span))) append_from_bytes(part, all);
  Nanoseconds begin = span[0], end = span[1];
  for (std::size_t i = 0; i + 1 < all.size(); i += 2) {
    begin = std::min(begin, all[i]);
    end = std::max(end, all[i + 1]);
  }
  return seconds(end - begin);
}

}  // namespace

TrainResult train(const planner::Plan& plan, const workload::SampleIndex& samples, Runner& runner,
                  Communicator& communicator, const TrainOptions& options) {
  TrainResult result;
  planner::WindowInput input{plan.workload, samples};
  const std::int64_t windows = planner::window_count(plan.fixed, input);
  std::vector<std::int64_t> chosen = options.windows;
  if (chosen.empty()) {
    chosen.resize(static_cast<std::size_t>(windows));
    std::iota(chosen.begin(), chosen.end(), 0);
  }
  // Every window is checked before it runs; planning has checked that the largest fit memory.
  const planner::VerifyContext rules = planner::verify_context(plan.fixed, input, 0);
  for (const std::int64_t window : chosen) {
    if (result.interrupted) break;
    input.stopped = result.diverged;
    const std::vector<planner::WindowStep> steps = planner::window_steps(plan.fixed, input, window);
    if (steps.empty()) continue;
    const planner::Program program = planner::window_program(plan.fixed, input, window);
    const std::vector<planner::Violation> violations = planner::verify(program, rules);
    BRAID_CHECK(violations.empty(), "window {} breaks the rule '{}': {}", window, name(violations[0].rule),
                violations[0].message);
    communicator.barrier();
    RunReport report = runner.run(program);
    result.interrupted = exchange(report, options.stop && options.stop->load(), communicator);

    WindowReport told;
    told.window = window;
    told.windows = windows;
    told.seconds = window_seconds(report, communicator);
    told.computed_tokens = planner::count_tokens(program, plan.workload).computed;
    for (const planner::WindowStep& step : steps) {
      if (result.diverged.contains(step.task)) continue;
      const StepReport& taken = report.steps.at({step.task, step.global_batch});
      const auto share = std::count_if(steps.begin(), steps.end(),
                                       [&](const planner::WindowStep& other) { return other.task == step.task; });
      told.steps.push_back(metrics_of(step, taken, plan.workload, samples, told.seconds / static_cast<double>(share)));
      if (!taken.diverged) continue;
      told.diverged.push_back(step.task);
      result.diverged.insert(step.task);
    }
    result.window_seconds.push_back(told.seconds);
    if (result.recorded.size() < options.recorded_windows) {
      result.recorded.push_back(window);
      result.timelines.push_back(gather_timeline(report, communicator));
    }
    if (communicator.rank() == 0 && options.on_window) options.on_window(told);
  }
  return result;
}

void write_adapters(const std::filesystem::path& folder, const workload::Workload& workload,
                    const std::set<TaskIndex>& without, Runner& runner, Communicator& communicator) {
  for (std::size_t task = 0; task < workload.tasks.size(); ++task) {
    Adapter& adapter = *runner.adapters()[task];
    const std::vector<float> mine(adapter.parameters().begin(), adapter.parameters().end());
    const std::vector<std::string> parts = communicator.gather(to_bytes(mine));
    if (communicator.rank() != 0 || without.contains(static_cast<TaskIndex>(task))) continue;
    std::vector<float> numbers;
    for (const std::string& part : parts) append_from_bytes(part, numbers);
    // Stages hold their layers in order and an adapter's numbers stand layer by layer.
    const workload::Task& spec = workload.tasks[task];
    Adapter whole(workload.backbone, spec.adapter, {0, static_cast<std::int32_t>(workload.backbone.layers)}, spec.seed);
    BRAID_CHECK(numbers.size() == whole.parameters().size(), "gathered {} numbers of {}", numbers.size(),
                whole.parameters().size());
    std::copy(numbers.begin(), numbers.end(), whole.parameters().begin());
    write_peft_adapter(folder / spec.name, spec.adapter, workload.backbone_reference, adapter_tensors(whole));
  }
}

}  // namespace braid::exec

#include "planner/window.h"

#include <algorithm>

#include "base/error.h"
#include "planner/load.h"

namespace braid::planner {
namespace {

constexpr int kInstructionIdBits = 32;
constexpr int kMicrobatchIdBits = 24;

bool runs(const WindowInput& input, TaskIndex task, std::int64_t step) {
  if (input.stopped.contains(task)) return false;
  return input.endless || step < input.samples.steps(task);
}

std::int64_t steps_of_htask(const std::vector<TaskIndex>& htask, const WindowInput& input) {
  std::int64_t steps = 0;
  for (const TaskIndex task : htask) steps = std::max(steps, input.samples.steps(task));
  return steps;
}

/// Which hTask has its turn in a window of queued tasks, and which of its steps; {-1, 0} past the end.
std::pair<std::int32_t, std::int64_t> queued_turn(const FixedPlan& fixed, const WindowInput& input,
                                                  std::int64_t window) {
  const auto htasks = static_cast<std::int64_t>(fixed.htasks.size());
  if (input.endless) {
    const std::int64_t turn = window / kQueuedTurn;
    return {static_cast<std::int32_t>(turn % htasks), turn / htasks * kQueuedTurn + window % kQueuedTurn};
  }
  for (std::size_t h = 0; h < fixed.htasks.size(); ++h) {
    const std::int64_t steps = steps_of_htask(fixed.htasks[h], input);
    if (window < steps) return {static_cast<std::int32_t>(h), window};
    window -= steps;
  }
  return {kNone, 0};
}

std::int32_t padded_length(const FixedPlan& fixed, const workload::Workload& workload,
                           const std::vector<TaskIndex>& htask, TaskIndex task, std::int32_t tokens) {
  std::int64_t length = tokens;
  if (fixed.padding == Padding::max_length) length = workload.tasks[static_cast<std::size_t>(task)].max_length;
  if (fixed.padding == Padding::longest) {
    for (const TaskIndex other : htask)
      length = std::max(length, static_cast<std::int64_t>(workload.tasks[static_cast<std::size_t>(other)].max_length));
  }
  return static_cast<std::int32_t>(length);
}

/// Splits the hTask's global batches into microbatches: each takes an equal run of every task's samples, in order.
std::vector<Microbatch> microbatches_of(const FixedPlan& fixed, const WindowInput& input,
                                        const std::vector<WindowSteps>& steps, std::int32_t replica_count,
                                        MicrobatchId first_id) {
  std::vector<Microbatch> microbatches;
  const std::int64_t parts = fixed.microbatches * replica_count;
  for (std::int64_t part = 0; part < parts; ++part) {
    Microbatch microbatch;
    microbatch.replica = static_cast<std::int32_t>(part % replica_count);
    for (const WindowSteps& step : steps) {
      const std::vector<TaskIndex>& htask = fixed.htasks[static_cast<std::size_t>(step.htask)];
      const std::vector<workload::SampleRef> batch = input.samples.global_batch(step.task, step.global_batch);
      const auto size = static_cast<std::int64_t>(batch.size());
      for (std::int64_t i = part * size / parts; i < (part + 1) * size / parts; ++i) {
        const workload::SampleRef& sample = batch[static_cast<std::size_t>(i)];
        Segment segment;
        segment.task = step.task;
        segment.global_batch = step.global_batch;
        segment.index = static_cast<std::int32_t>(i);
        segment.sample = sample.sample;
        segment.end = static_cast<std::int32_t>(sample.tokens);
        segment.padding = padded_length(fixed, input.workload, htask, step.task, segment.end) - segment.end;
        segment.scored = static_cast<std::int32_t>(sample.supervised);
        microbatch.segments.push_back(segment);
      }
    }
    if (microbatch.segments.empty()) continue;
    microbatch.id = first_id + static_cast<MicrobatchId>(microbatches.size());
    microbatches.push_back(std::move(microbatch));
  }
  return microbatches;
}

StageOrder stage_order(PipelineTemplate pipeline, std::span<const MicrobatchId> ids, int stage, int stages) {
  switch (pipeline) {
    case PipelineTemplate::gpipe:
      return gpipe_order(ids);
    case PipelineTemplate::one_by_one:
      return one_by_one_order(ids);
    case PipelineTemplate::one_forward_one_backward:
      break;
  }
  return one_forward_one_backward_order(ids, stage, stages);
}

void append_orders(const FixedPlan& fixed, const std::vector<Microbatch>& microbatches, Schedule& schedule) {
  for (std::size_t replica = 0; replica < schedule.replicas.size(); ++replica) {
    std::vector<MicrobatchId> ids;
    for (const Microbatch& microbatch : microbatches) {
      if (static_cast<std::size_t>(microbatch.replica) == replica) ids.push_back(microbatch.id);
    }
    const int stages = schedule.replicas[replica].stages();
    for (int stage = 0; stage < stages; ++stage) {
      const StageOrder order = stage_order(fixed.pipeline, ids, stage, stages);
      StageOrder& all = schedule.orders[replica][static_cast<std::size_t>(stage)];
      all.insert(all.end(), order.begin(), order.end());
    }
  }
}

}  // namespace

std::vector<costmodel::AdapterShape> adapters_of(const workload::Workload& workload) {
  std::vector<costmodel::AdapterShape> adapters;
  for (const workload::Task& task : workload.tasks) adapters.push_back(task.adapter);
  return adapters;
}

TaskAdapters task_adapters(const FixedPlan& fixed, const workload::Workload& workload) {
  return {adapters_of(workload), fixed.adapter_kernels};
}

MemoryContext memory_context(const FixedPlan& fixed, const workload::Workload& workload) {
  return {workload.backbone, adapters_of(workload), fixed.storage, fixed.backbone_copies};
}

std::int64_t window_count(const FixedPlan& fixed, const WindowInput& input) {
  std::int64_t count = 0;
  for (const std::vector<TaskIndex>& htask : fixed.htasks) {
    const std::int64_t steps = steps_of_htask(htask, input);
    count = fixed.turns == Turns::queued ? count + steps : std::max(count, steps);
  }
  return count;
}

std::vector<WindowSteps> window_steps(const FixedPlan& fixed, const WindowInput& input, std::int64_t window) {
  std::vector<WindowSteps> steps;
  const auto add = [&](std::int32_t htask, std::int64_t step) {
    for (const TaskIndex task : fixed.htasks[static_cast<std::size_t>(htask)]) {
      if (runs(input, task, step)) steps.push_back({htask, task, step});
    }
  };
  if (fixed.turns == Turns::queued) {
    const auto [htask, step] = queued_turn(fixed, input, window);
    if (htask != kNone) add(htask, step);
  } else {
    for (std::size_t h = 0; h < fixed.htasks.size(); ++h) add(static_cast<std::int32_t>(h), window);
  }
  return steps;
}

namespace {

/// Per task, how many steps it has taken when a window begins.
std::vector<std::int64_t> steps_before(const FixedPlan& fixed, const WindowInput& input, std::int64_t window) {
  std::vector<std::int64_t> taken(input.workload.tasks.size(), 0);
  for (std::size_t h = 0; h < fixed.htasks.size(); ++h) {
    std::int64_t turns = window;
    if (fixed.turns == Turns::queued) {
      const auto [now, step] = queued_turn(fixed, input, window);
      const auto mine = static_cast<std::int32_t>(h);
      if (now == mine) {
        turns = step;
      } else if (input.endless) {
        // In rounds of kQueuedTurn steps each: those before the one that has its turn are a round ahead.
        turns = (step / kQueuedTurn + (mine < now ? 1 : 0)) * kQueuedTurn;
      } else {
        turns = now == kNone || mine < now ? steps_of_htask(fixed.htasks[h], input) : 0;
      }
    }
    for (const TaskIndex task : fixed.htasks[h])
      taken[static_cast<std::size_t>(task)] = input.endless ? turns : std::min(turns, input.samples.steps(task));
  }
  return taken;
}

}  // namespace

Program window_program(const FixedPlan& fixed, const WindowInput& input, std::int64_t window) {
  Schedule schedule;
  schedule.replicas = fixed.deployment;
  const costmodel::BackboneShape& backbone = input.workload.backbone;
  for (const workload::Task& task : input.workload.tasks) schedule.tasks.push_back({task.optimizer.max_grad_norm > 0});
  for (const ReplicaShape& replica : fixed.deployment)
    schedule.orders.emplace_back(static_cast<std::size_t>(replica.stages()));
  schedule.next_batch = steps_before(fixed, input, window);
  schedule.first_id = window << kInstructionIdBits;
  schedule.bytes_per_token = costmodel::message_bytes_per_token(backbone, fixed.storage);
  schedule.gradient_bytes = [&](TaskIndex task, LayerRange layers) {
    return static_cast<Bytes>(sizeof(float)) * layers.count() *
           input.workload.tasks[static_cast<std::size_t>(task)].adapter.layer_parameters(backbone);
  };
  const std::vector<WindowSteps> steps = window_steps(fixed, input, window);
  MicrobatchId next_id = window << kMicrobatchIdBits;
  for (std::size_t h = 0; h < fixed.htasks.size(); ++h) {
    std::vector<WindowSteps> mine;
    std::copy_if(steps.begin(), steps.end(), std::back_inserter(mine),
                 [&](const WindowSteps& step) { return static_cast<std::size_t>(step.htask) == h; });
    if (mine.empty()) continue;
    const auto microbatches =
        microbatches_of(fixed, input, mine, static_cast<std::int32_t>(fixed.deployment.size()), next_id);
    next_id += static_cast<MicrobatchId>(microbatches.size());
    append_orders(fixed, microbatches, schedule);
    schedule.microbatches.insert(schedule.microbatches.end(), microbatches.begin(), microbatches.end());
  }
  return lower(schedule);
}

std::vector<std::int64_t> telling_windows(const FixedPlan& fixed, const WindowInput& input) {
  std::set<std::int64_t> windows;
  const auto replicas = static_cast<std::int32_t>(fixed.deployment.size());
  const auto largest_microbatch = [&](std::int64_t window) {
    std::int64_t largest = 0;
    for (const Microbatch& microbatch :
         microbatches_of(fixed, input, window_steps(fixed, input, window), replicas, MicrobatchId{0}))
      largest = std::max(largest, microbatch.computed_tokens());
    return largest;
  };
  const auto scan = [&](std::int64_t first, std::int64_t count) {
    if (count <= 0) return;
    std::int64_t heaviest = first, most = 0;
    const std::int64_t looks = std::min(count, kScannedWindows);
    for (std::int64_t look = 0; look < looks; ++look) {
      const std::int64_t window =
          first + static_cast<std::int64_t>(static_cast<double>(look) / static_cast<double>(looks) *
                                            static_cast<double>(count));
      const std::int64_t tokens = largest_microbatch(window);
      if (tokens > most) heaviest = window, most = tokens;
    }
    windows.insert({first, heaviest});
  };
  if (fixed.turns != Turns::queued) {
    scan(0, window_count(fixed, input));
    return {windows.begin(), windows.end()};
  }
  std::int64_t first = 0;
  for (const std::vector<TaskIndex>& htask : fixed.htasks) {
    scan(first, steps_of_htask(htask, input));
    first += steps_of_htask(htask, input);
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

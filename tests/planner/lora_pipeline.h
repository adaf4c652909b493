#pragma once

#include <algorithm>
#include <vector>

#include "planner/streams.h"
#include "sim/replay.h"

// LoRAPP's pipeline in mid-stream (mLoRA §3.2.2).
namespace braid::planner::testing {

/// The stream of tasks in turn, each global batch gated by the task's one before, in LoRAPP's order.
inline Schedule lora_schedule(const StreamShape& shape, LoraPipeline mode, double transfer) {
  Schedule schedule = schedule_of(shape, Template::gpipe);
  const std::vector<MicrobatchId> ids = ids_of(schedule.microbatches, 0);
  std::vector<StreamedMicrobatch> stream;
  const std::int32_t round = shape.tasks * shape.microbatches;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(ids.size()); ++i) {
    const std::int32_t last_of_batch = i - i % shape.microbatches + shape.microbatches - 1;
    stream.push_back({ids[static_cast<std::size_t>(i)], 10, last_of_batch < round ? kNone : last_of_batch - round});
  }
  schedule.orders[0] = lora_pipeline_orders(stream, shape.stages, mode, transfer);
  return schedule;
}

/// Of L tasks on D stages with N microbatches each.
struct LoraCase {
  int tasks = 1;
  int stages = 1;
  int microbatches = 1;
};

/// The rounds over which bubbles are measured, and those before them in which the pipeline settles.
inline constexpr int kSettledRounds = 10, kMeasuredRounds = 16;

/// The share of time in mid-stream in which a stage does nothing: between two Steps of the same task on it. A message
/// takes `send`.
inline double lora_bubble_ratio(const LoraCase& one, LoraPipeline mode, Nanoseconds forward, Nanoseconds backward,
                                Nanoseconds send = 0) {
  const double transfer = 2 * static_cast<double>(send) / static_cast<double>(forward + backward);
  const StreamShape shape{one.stages, one.tasks, one.microbatches, kSettledRounds + kMeasuredRounds + 2};
  const Program program = lower(lora_schedule(shape, mode, transfer));
  const Costs costs = even_costs(shape.stages, forward, backward, send);
  const Timeline timeline = sim::replay(program, durations_of(program, costs));
  Nanoseconds begin = 0, end = 0;
  for (const Event& event : timeline.events) {
    if (event.kind != Kind::step || event.stage != 0) continue;
    const Instruction& step = program.stages[0].instructions[static_cast<std::size_t>(event.instruction)];
    if (step.task != 0) continue;
    if (step.global_batch == kSettledRounds) begin = event.end;
    if (step.global_batch == kSettledRounds + kMeasuredRounds) end = event.end;
  }
  const double busy = static_cast<double>(kMeasuredRounds * shape.tasks * shape.microbatches * (forward + backward));
  return 1 - busy / static_cast<double>(end - begin);
}

inline double lora_closed_form(const LoraCase& one) {
  const double cycle = one.stages + one.microbatches - 1;
  return std::max((cycle - one.tasks * one.microbatches) / cycle, 0.0);
}

/// L, D, N = 1 to 8.
inline std::vector<LoraCase> lora_cases() {
  std::vector<LoraCase> cases;
  for (int tasks = 1; tasks <= 8; ++tasks) {
    for (int stages = 1; stages <= 8; ++stages) {
      for (int microbatches = 1; microbatches <= 8; ++microbatches) cases.push_back({tasks, stages, microbatches});
    }
  }
  return cases;
}

}  // namespace braid::planner::testing

#include "planner/predict.h"

#include <algorithm>
#include <map>

#include "costmodel/energy.h"
#include "planner/durations.h"
#include "planner/microbatches.h"
#include "planner/program_stream.h"

namespace braid::planner {
namespace {

/// Windows in which every task takes `steps` steps, or a window's where that is more.
std::vector<std::int64_t> windows_to_predict(const FixedPlan& fixed, std::int64_t steps) {
  static_assert(kPredictedSteps == kQueuedTurn);
  steps = std::max<std::int64_t>(1, steps / fixed.steps_per_window);
  std::vector<std::int64_t> windows;
  const auto turns = static_cast<std::int64_t>(std::max<std::size_t>(1, fixed.turns.size()));
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    for (std::int64_t step = 0; step < steps; ++step) windows.push_back(turn * kQueuedTurn + step);
  }
  return windows;
}

/// Of a plan whose windows have many steps, the first two.
FixedPlan glanced(FixedPlan fixed) {
  fixed.steps_per_window = std::min<std::int64_t>(fixed.steps_per_window, 2);
  return fixed;
}

WindowInput without_end(WindowInput input) {
  input.cycle = kPredictedSteps;
  return input;
}

/// Of each turn the first.
bool holds_first_step(std::int64_t window) {
  return window % kQueuedTurn == 0;
}

/// Per rank, the larger of what is told so far and what the Program needs.
void raise_memory(const Program& program, const MemoryContext& memory, Prediction& prediction) {
  const std::vector<StageMemory> memories = walk_memory(program, memory);
  const auto raise = [](std::vector<Bytes>& of_ranks, std::int32_t rank, Bytes bytes) {
    of_ranks.resize(std::max(of_ranks.size(), static_cast<std::size_t>(rank) + 1));
    Bytes& most = of_ranks[static_cast<std::size_t>(rank)];
    most = std::max(most, bytes);
  };
  for (std::size_t s = 0; s < memories.size(); ++s) {
    for (const std::int32_t rank : program.stages[s].ranks) {
      raise(prediction.peak_memory_bytes, rank, memories[s].peak());
      raise(prediction.held_memory_bytes, rank, memories[s].fixed());
    }
  }
}

/// The one with the largest microbatch.
std::int64_t fullest_window(const FixedPlan& fixed, const WindowInput& input, std::span<const std::int64_t> windows) {
  if (windows.size() == 1) return windows.front();
  std::int64_t fullest = 0, most = -1;
  for (const std::int64_t window : windows) {
    const std::int64_t largest = largest_microbatch(fixed, input, window);
    if (largest > most) most = largest, fullest = window;
  }
  return fullest;
}

/// The Programs of a plan's windows, the last one kept.
class WindowPrograms {
 public:
  WindowPrograms(const FixedPlan& plan, const WindowInput& input, Outlook outlook)
      : fixed_(outlook == Outlook::glance ? glanced(plan) : plan), input_(without_end(input)) {}

  const FixedPlan& fixed() const { return fixed_; }
  const WindowInput& input() const { return input_; }
  const Program& of(std::int64_t window) {
    if (window != window_) program_ = window_program(fixed_, input_, window), window_ = window;
    return program_;
  }

 private:
  FixedPlan fixed_;
  WindowInput input_;
  std::int64_t window_ = -1;
  Program program_;
};

/// What a window is predicted to do.
struct WindowOutlook {
  double flops = 0;
  costmodel::Estimate work;
  Nanoseconds span = 0;
  Nanoseconds first_steps = 0;    // when every task has taken its first step of the window
  std::vector<Nanoseconds> busy;  // per stage
};

Nanoseconds end_of_first_steps(const Program& program, const Timeline& timeline) {
  Nanoseconds end = 0;
  for (const Event& event : timeline.events) {
    if (event.kind != Kind::step) continue;
    const auto stage = static_cast<std::size_t>(event.stage);
    const Instruction& step =
        program.stages[stage]
            .instructions[static_cast<std::size_t>(event.instruction - program.stages[stage].first_id)];
    if (step.global_batch == program.before.stages[stage].next_batch[static_cast<std::size_t>(step.task)])
      end = std::max(end, event.end);
  }
  return end;
}

/// What a window's times depend on: the loads of its microbatches, in order.
using Likeness = std::vector<std::int64_t>;

Likeness likeness_of(const Program& program) {
  Likeness likeness;
  for (const Microbatch& microbatch : program.microbatches) {
    likeness.push_back(-1 - microbatch.replica);
    for (const Segment& segment : microbatch.segments) {
      likeness.insert(likeness.end(), {segment.task, segment.begin, segment.end + segment.padding, segment.scored});
    }
  }
  return likeness;
}

/// Replays windows, those alike once.
class Outlooks {
 public:
  Outlooks(const FixedPlan& fixed, const WindowInput& input, ClockLatency& latency, const Judge& judge, Outlook outlook)
      : style_(pass_style(fixed, input.workload)),
        input_(input),
        latency_(latency),
        judge_(judge),
        counts_flops_(outlook == Outlook::full) {}

  const WindowOutlook& of(const Program& program) {
    auto [known, is_new] = known_.try_emplace(likeness_of(program));
    if (!is_new) return known->second;
    WindowOutlook& outlook = known->second;
    const PredictedDurations predicted = predict_durations(program, style_, latency_);
    const Timeline timeline = judge_(program, predicted.durations);
    outlook.span = timeline.end();
    outlook.first_steps = end_of_first_steps(program, timeline);
    outlook.work = predicted.total;
    if (counts_flops_)
      outlook.flops = backbone_flops(program, program.microbatches, input_.workload.backbone, style_.adapters);
    outlook.busy = compute_busy(program, timeline, predicted.stalled);
    return outlook;
  }

 private:
  PassStyle style_;
  const WindowInput& input_;
  ClockLatency& latency_;
  const Judge& judge_;
  bool counts_flops_;
  std::map<Likeness, WindowOutlook> known_;
};

struct Totals {
  WindowOutlook sum;
  TokenCounts tokens;  // of windows that take the same, rows may hold more or less data
  Nanoseconds first_span = 0;

  void add(const WindowOutlook& window, const TokenCounts& counts) {
    tokens.computed += counts.computed;
    tokens.billed += counts.billed;
    tokens.data += counts.data;
    sum.flops += window.flops;
    sum.work += window.work;
    sum.span += window.span;
    sum.busy.resize(window.busy.size());
    for (std::size_t s = 0; s < window.busy.size(); ++s) sum.busy[s] += window.busy[s];
  }
};

}  // namespace

TokenCounts count_tokens(std::span<const Microbatch> microbatches, const workload::Workload& workload) {
  TokenCounts counts;
  for (const Microbatch& microbatch : microbatches) {
    for (const Segment& segment : microbatch.segments) {
      counts.computed += segment.computed_tokens();
      counts.data += segment.tokens();
      if (segment.begin == 0) counts.billed += workload.tasks[static_cast<std::size_t>(segment.task)].max_length;
    }
  }
  return counts;
}

std::vector<Nanoseconds> compute_busy(const Program& program, const Timeline& timeline, const Durations& stalled) {
  std::vector<Nanoseconds> busy(program.stages.size(), 0);
  for (const Event& event : timeline.events) {
    const auto index = static_cast<std::size_t>(event.stage);
    const StageProgram& stage = program.stages[index];
    if (event.stream != Stream::compute || is_send(event.kind) || is_recv(event.kind)) continue;
    if (event.rank != stage.ranks.front()) continue;
    busy[index] +=
        event.end - event.start - stalled.stages[index][static_cast<std::size_t>(event.instruction - stage.first_id)];
  }
  return busy;
}

namespace {

void glance_at_memory(WindowPrograms& programs, Prediction& prediction) {
  const FixedPlan& fixed = programs.fixed();
  const std::int64_t fullest = fullest_window(fixed, programs.input(), windows_to_predict(fixed, 1));
  raise_memory(programs.of(fullest), memory_context(fixed, programs.input().workload), prediction);
}

void rates_of(WindowPrograms& programs, ClockLatency& latency, const Judge& judge, Outlook outlook,
              Prediction& prediction);

}  // namespace

void predict_memory(const FixedPlan& plan, const WindowInput& input, Outlook outlook, Prediction& prediction) {
  if (outlook == Outlook::glance) {
    WindowPrograms programs(plan, input, outlook);
    return glance_at_memory(programs, prediction);
  }
  const MemoryContext memory = memory_context(plan, input.workload);
  for (const std::int64_t window : telling_windows(plan, input)) {
    for (const Program& program : programs_around(plan, input, window)) raise_memory(program, memory, prediction);
  }
}

void predict_rates(const FixedPlan& plan, const WindowInput& input, ClockLatency& latency, const Judge& judge,
                   Outlook outlook, Prediction& prediction) {
  WindowPrograms programs(plan, input, outlook);
  rates_of(programs, latency, judge, outlook, prediction);
}

namespace {

void rates_of(WindowPrograms& programs, ClockLatency& latency, const Judge& judge, Outlook outlook,
              Prediction& prediction) {
  const FixedPlan& fixed = programs.fixed();
  const WindowInput& endless = programs.input();
  const std::int64_t steps = outlook == Outlook::full ? kPredictedSteps : 1;
  Outlooks outlooks(fixed, endless, latency, judge, outlook);
  Totals totals;
  for (const std::int64_t window : windows_to_predict(fixed, steps)) {
    const Program& program = programs.of(window);
    const WindowOutlook& seen = outlooks.of(program);
    // Each of these policies drains its pipeline every window, so that windows simply add up.
    totals.add(seen, count_tokens(program.microbatches, endless.workload));
    if (holds_first_step(window)) totals.first_span += seen.first_steps;
  }
  const costmodel::Profile& profile = latency.cost().profile();
  const double span = seconds(totals.sum.span);
  const auto taken =
      static_cast<double>(std::max<std::int64_t>(1, steps / fixed.steps_per_window) * fixed.steps_per_window);
  prediction.step_seconds = span / taken;
  prediction.first_step_seconds = seconds(totals.first_span);
  prediction.tokens_per_second = static_cast<double>(totals.tokens.computed) / span;
  prediction.effective_tokens_per_second = static_cast<double>(totals.tokens.billed) / span;
  prediction.data_tokens_per_second = static_cast<double>(totals.tokens.data) / span;
  // All ranks of a stage are as busy as its first.
  double ranks = 0, busy = 0;
  std::size_t stage = 0;
  for (const ReplicaShape& replica : fixed.deployment) {
    for (std::int32_t s = 0; s < replica.stages(); ++s, ++stage) {
      const double stage_busy = seconds(totals.sum.busy[stage]);
      ranks += replica.tp;
      busy += replica.tp * stage_busy;
      prediction.stage_busy_share.push_back(stage_busy / span);
    }
  }
  prediction.bubble_ratio = 1 - busy / (ranks * span);
  if (profile.peak_flops > 0) prediction.gpu_utilization = totals.sum.flops / (ranks * span * profile.peak_flops);
  if (!profile.device.empty()) {
    const costmodel::Power power = costmodel::power_of(costmodel::device_of(profile.device));
    prediction.energy_joules = costmodel::energy_joules(power, ranks, span, busy) / taken;
  }
  const costmodel::Estimate& work = totals.sum.work;
  if (work.seconds > 0) prediction.extrapolated_share = work.extrapolated_seconds / work.seconds;
  if (outlook == Outlook::full && fixed.chunk_size > 0) {
    const AlignmentTokens tokens = first_step_tokens(fixed, endless);
    prediction.chunk_padding_share = static_cast<double>(tokens.chunk_padding) / static_cast<double>(tokens.computed());
  }
}

}  // namespace

Prediction predict(const FixedPlan& plan, const WindowInput& input, ClockLatency& latency, const Judge& judge,
                   Outlook outlook) {
  Prediction prediction;
  WindowPrograms programs(plan, input, outlook);
  if (outlook == Outlook::glance) {
    glance_at_memory(programs, prediction);
  } else {
    predict_memory(plan, input, outlook, prediction);
  }
  rates_of(programs, latency, judge, outlook, prediction);
  return prediction;
}

}  // namespace braid::planner

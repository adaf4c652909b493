#include "planner/window/predict.h"

#include <algorithm>
#include <array>
#include <map>

#include "costmodel/gpu/energy.h"
#include "planner/latency/durations.h"
#include "planner/window/microbatches.h"
#include "planner/window/run_memory.h"

namespace braid::planner {
namespace {

/// Of each turn the first.
bool holds_first_step(std::int64_t window) {
  return window % kQueuedTurn == 0;
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

/// What a window is predicted to do.
struct WindowOutlook {
  double flops = 0;
  costmodel::Estimate work;
  Nanoseconds span = 0;
  std::vector<Nanoseconds> busy;  // per stage
};

/// What a window's times depend on: the loads of its microbatches, in order.
using Likeness = std::vector<std::int64_t>;

Likeness likeness_of(const Program& program) {
  Likeness likeness;
  for (const Microbatch& microbatch : program.microbatches) {
    likeness.push_back(-1 - microbatch.replica);
    for (const Segment& segment : microbatch.segments) {
      likeness.insert(likeness.end(),
                      {segment.task, segment.chosen, segment.begin, segment.end + segment.padding, segment.scored});
    }
  }
  return likeness;
}

/// The global batch that an instruction is part of.
std::int64_t batch_of(const Program& program, const StageProgram& stage, const Instruction& instruction) {
  if (instruction.global_batch != kNone) return instruction.global_batch;
  const MicrobatchId id =
      instruction.parts.count > 0 ? stage.parts_of(instruction).front().microbatch : instruction.microbatch;
  return program.microbatch(id).segments.front().global_batch;
}

/// What a stream takes for the stretch, told by its first slice: no less than what passes on the first stage between
/// two Steps of any task so many steps apart, nor than the work of those steps on any stream of any stage, some of
/// which may be done before the stretch. Where the stream has settled that is the time between its steps' ends. Lower
/// bounds of a task's cycle are of the first, those of stages and links of the second.
Nanoseconds span_of_stretch(const Program& program, const Timeline& timeline, const Durations& durations,
                            const Stretch& stretch) {
  Nanoseconds span = 0;
  std::map<TaskIndex, Nanoseconds> begins;
  for (const Event& event : timeline.events) {
    if (event.stage != 0 || event.kind != Kind::step) continue;
    const StageProgram& stage = program.stages.front();
    const Instruction& step = stage.instructions[static_cast<std::size_t>(event.instruction - stage.first_id)];
    if (step.global_batch + 1 == stretch.settling) begins[step.task] = event.end;
    if (step.global_batch + 1 == stretch.settling + stretch.steps)
      span = std::max(span, event.end - begins.at(step.task));
  }
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const StageProgram& stage = program.stages[s];
    std::array<Nanoseconds, kStreamCount> work{};
    for (std::size_t i = 0; i < stage.instructions.size(); ++i) {
      const Instruction& instruction = stage.instructions[i];
      if (!is_recv(instruction.kind) && stretch.holds(batch_of(program, stage, instruction)))
        work[static_cast<std::size_t>(instruction.stream)] += durations.stages[s][i];
    }
    span = std::max(span, *std::max_element(work.begin(), work.end()));
  }
  return span;
}

/// Busy nanoseconds of each stage's compute stream: its instructions of the stretch without what they are `stalled`, as
/// in PredictedDurations, and without messages that stand in it.
std::vector<Nanoseconds> compute_busy(const Program& program, const Timeline& timeline, const Durations& stalled,
                                      const Stretch* stretch) {
  std::vector<Nanoseconds> busy(program.stages.size(), 0);
  for (const Event& event : timeline.events) {
    const auto index = static_cast<std::size_t>(event.stage);
    const StageProgram& stage = program.stages[index];
    if (event.stream != Stream::compute || is_send(event.kind) || is_recv(event.kind)) continue;
    if (event.rank != stage.ranks.front()) continue;
    const auto place = static_cast<std::size_t>(event.instruction - stage.first_id);
    if (stretch && !stretch->holds(batch_of(program, stage, stage.instructions[place]))) continue;
    busy[index] += event.end - event.start - stalled.stages[index][place];
  }
  return busy;
}

/// Replays windows, those alike once.
class Outlooks {
 public:
  Outlooks(const WindowSlices& slices, ClockLatency& latency, const Judge& judge, Outlook outlook)
      : style_(pass_style(slices.fixed(), slices.input().workload)),
        input_(slices.input()),
        stretch_(streams(slices.fixed()) ? &slices.stretch() : nullptr),
        latency_(latency),
        judge_(judge),
        counts_flops_(outlook == Outlook::full) {}

  /// `microbatches`: those that are measured.
  const WindowOutlook& of(const Program& program, std::span<const Microbatch> microbatches) {
    auto [known, is_new] = known_.try_emplace(likeness_of(program));
    if (!is_new) return known->second;
    WindowOutlook& outlook = known->second;
    const PredictedDurations predicted = predict_durations(program, style_, latency_);
    const Timeline timeline = judge_(program, predicted.durations);
    outlook.span = stretch_ ? span_of_stretch(program, timeline, predicted.durations, *stretch_) : timeline.end();
    outlook.work = predicted.total;
    if (counts_flops_) outlook.flops = backbone_flops(program, microbatches, input_.workload.backbone, style_.adapters);
    outlook.busy = compute_busy(program, timeline, predicted.stalled, stretch_);
    return outlook;
  }

  /// From an empty pipeline to an empty one.
  Nanoseconds span_alone(const Program& program) {
    return judge_(program, predict_durations(program, style_, latency_).durations).end();
  }

 private:
  PassStyle style_;
  const WindowInput& input_;
  const Stretch* stretch_;  // of a stream
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
      if (segment.begin == 0) counts.billed += workload.tasks[static_cast<std::size_t>(segment.task)].sample_tokens();
    }
  }
  return counts;
}

void Predictor::memory(Prediction& prediction) {
  RankMemory ranks;
  if (outlook_ == Outlook::glance) {
    const std::int64_t fullest = fullest_window(slices_.fixed(), slices_.input(), slices_.windows());
    const Program& program = slices_.of(fullest).program;
    ranks.raise(program, walk_memory(program, memory_context(plan_, input_.workload)));
    telling_windows_ = {fullest};
  } else {
    RunMemory run = run_memory(plan_, input_);
    telling_windows_ = std::move(run.telling_windows);
    ranks = std::move(run);
  }
  prediction.peak_memory_bytes = std::move(ranks.peak);
  prediction.held_memory_bytes = std::move(ranks.held);
}

std::vector<Bytes> Predictor::peaks_with(const std::vector<ReplicaShape>& recomputing) {
  if (telling_.empty()) {
    for (const std::int64_t window : telling_windows_) {
      if (outlook_ == Outlook::glance) {
        telling_.push_back(slices_.of(window).program);
      } else {
        for (Program& program : programs_around(plan_, input_, window)) telling_.push_back(std::move(program));
      }
    }
  }
  RankMemory ranks;
  for (Program& program : telling_) {
    for (StageProgram& stage : program.stages)
      stage.recompute = recomputing[static_cast<std::size_t>(stage.replica)].recompute_of(stage.stage);
    ranks.raise(program, walk_memory(program, memory_context(plan_, input_.workload)));
  }
  return std::move(ranks.peak);
}

void Predictor::rates(ClockLatency& latency, const Judge& judge, Prediction& prediction) {
  const FixedPlan& fixed = slices_.fixed();
  const WindowInput& endless = slices_.input();
  Outlooks outlooks(slices_, latency, judge, outlook_);
  FixedPlan one_step = fixed;
  one_step.schedule.steps_per_window = 1;
  Totals totals;
  for (const std::int64_t window : slices_.windows()) {
    const Slice& slice = slices_.of(window);
    std::vector<Microbatch> measured = slice.microbatches;
    if (streams(fixed)) {
      // A microbatch may have samples of two steps.
      for (Microbatch& one : measured)
        std::erase_if(one.segments,
                      [&](const Segment& segment) { return !slices_.stretch().holds(segment.global_batch); });
      std::erase_if(measured, [](const Microbatch& one) { return one.segments.empty(); });
    }
    const WindowOutlook& seen = outlooks.of(slice.program, measured);
    // Each turn by itself, and where the pipeline drains each step: these simply add up.
    totals.add(seen, count_tokens(measured, endless.workload));
    if (!holds_first_step(window)) continue;
    if (!streams(fixed)) {
      totals.first_span += seen.span;
    } else if (outlook_ == Outlook::full) {
      totals.first_span += outlooks.span_alone(window_program(one_step, endless, window));
    }
  }
  const costmodel::Profile& profile = latency.cost().profile();
  const double span = seconds(totals.sum.span);
  const auto taken = static_cast<double>(slices_.stretch().steps);
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
    const costmodel::Power power = costmodel::power_of(costmodel::device_of(profile.device), profile.clock);
    prediction.energy_joules = costmodel::energy_joules(power, ranks, span, busy) / taken;
  }
  const costmodel::Estimate& work = totals.sum.work;
  if (work.seconds > 0) prediction.extrapolated_share = work.extrapolated_seconds / work.seconds;
  if (outlook_ == Outlook::full && fixed.batching.chunk_size > 0) {
    const AlignmentTokens tokens = first_step_tokens(fixed, endless);
    prediction.chunk_padding_share = static_cast<double>(tokens.chunk_padding) / static_cast<double>(tokens.computed());
  }
}

Prediction predict(const FixedPlan& plan, const WindowInput& input, ClockLatency& latency, const Judge& judge,
                   Outlook outlook) {
  Prediction prediction;
  Predictor predictor(plan, input, outlook);
  predictor.memory(prediction);
  predictor.rates(latency, judge, prediction);
  return prediction;
}

}  // namespace braid::planner

#include "planner/predict.h"

#include <algorithm>

#include "costmodel/energy.h"
#include "planner/durations.h"

namespace braid::planner {
namespace {

/// Windows in which every task takes kPredictedSteps steps.
std::int64_t windows_to_predict(const FixedPlan& fixed) {
  static_assert(kPredictedSteps == kQueuedTurn);
  return fixed.turns == Turns::queued ? kPredictedSteps * static_cast<std::int64_t>(fixed.htasks.size())
                                      : kPredictedSteps;
}

bool holds_first_step(const FixedPlan& fixed, std::int64_t window) {
  return fixed.turns == Turns::queued ? window % kQueuedTurn == 0 : window == 0;
}

/// Per rank, the larger of `peaks` and what the Program needs.
void raise_peaks(const Program& program, const MemoryContext& memory, std::vector<Bytes>& peaks) {
  const std::vector<StageMemory> memories = walk_memory(program, memory);
  for (std::size_t s = 0; s < memories.size(); ++s) {
    for (const std::int32_t rank : program.stages[s].ranks) {
      peaks.resize(std::max(peaks.size(), static_cast<std::size_t>(rank) + 1));
      Bytes& peak = peaks[static_cast<std::size_t>(rank)];
      peak = std::max(peak, memories[s].peak());
    }
  }
}

struct Totals {
  TokenCounts tokens;
  double flops = 0;
  costmodel::Estimate work;
  Nanoseconds span = 0;
  Nanoseconds first_span = 0;
  std::vector<Nanoseconds> busy;
};

}  // namespace

TokenCounts count_tokens(const Program& program, const workload::Workload& workload) {
  TokenCounts counts;
  for (const Microbatch& microbatch : program.microbatches) {
    for (const Segment& segment : microbatch.segments) {
      counts.computed += segment.computed_tokens();
      counts.data += segment.tokens();
      if (segment.begin == 0) counts.billed += workload.tasks[static_cast<std::size_t>(segment.task)].max_length;
    }
  }
  return counts;
}

std::vector<Nanoseconds> compute_busy(const Program& program, const Timeline& timeline) {
  std::vector<Nanoseconds> busy(program.stages.size(), 0);
  for (const Event& event : timeline.events) {
    const StageProgram& stage = program.stages[static_cast<std::size_t>(event.stage)];
    if (event.stream == Stream::compute && event.rank == stage.ranks.front())
      busy[static_cast<std::size_t>(event.stage)] += event.end - event.start;
  }
  return busy;
}

Prediction predict(const FixedPlan& fixed, const WindowInput& input, const costmodel::CostModel& cost,
                   const Judge& judge) {
  WindowInput endless = input;
  endless.endless = true;
  const std::vector<costmodel::AdapterShape> adapters = adapters_of(input.workload);
  const MemoryContext memory{input.workload.backbone, adapters, fixed.storage, fixed.backbone_copies};
  costmodel::StageLatency latency(cost, input.workload.backbone);
  Prediction prediction;
  Totals totals;
  double ranks = 0;
  for (std::int64_t window = 0; window < windows_to_predict(fixed); ++window) {
    const Program program = window_program(fixed, endless, window);
    const PredictedDurations predicted = predict_durations(program, adapters, latency);
    const Timeline timeline = judge(program, predicted.durations);
    // Each of these policies drains its pipeline every window, so that windows simply add up.
    totals.span += timeline.end();
    if (holds_first_step(fixed, window)) totals.first_span += timeline.end();
    totals.work += predicted.total;
    totals.flops += backbone_flops(program, input.workload.backbone, adapters);
    const TokenCounts tokens = count_tokens(program, input.workload);
    totals.tokens.computed += tokens.computed;
    totals.tokens.billed += tokens.billed;
    totals.tokens.data += tokens.data;
    const std::vector<Nanoseconds> busy = compute_busy(program, timeline);
    totals.busy.resize(busy.size());
    for (std::size_t s = 0; s < busy.size(); ++s) totals.busy[s] += busy[s];
    raise_peaks(program, memory, prediction.peak_memory_bytes);
    ranks = 0;
    for (const StageProgram& stage : program.stages) ranks += static_cast<double>(stage.ranks.size());
  }
  for (const std::int64_t window : telling_windows(fixed, input))
    raise_peaks(window_program(fixed, input, window), memory, prediction.peak_memory_bytes);
  const double span = seconds(totals.span);
  prediction.step_seconds = span / static_cast<double>(kPredictedSteps);
  prediction.first_step_seconds = seconds(totals.first_span);
  prediction.tokens_per_second = static_cast<double>(totals.tokens.computed) / span;
  prediction.effective_tokens_per_second = static_cast<double>(totals.tokens.billed) / span;
  prediction.data_tokens_per_second = static_cast<double>(totals.tokens.data) / span;
  double busy = 0;
  for (const Nanoseconds time : totals.busy) {
    busy += seconds(time);
    prediction.stage_busy_share.push_back(seconds(time) / span);
  }
  prediction.bubble_ratio = 1 - busy / (ranks * span);
  if (cost.profile().peak_flops > 0)
    prediction.gpu_utilization = totals.flops / (ranks * span * cost.profile().peak_flops);
  if (const std::string& device = cost.profile().device; !device.empty()) {
    const costmodel::Power power = costmodel::power_of(costmodel::device_of(device));
    prediction.energy_joules =
        costmodel::energy_joules(power, ranks, span, busy) / static_cast<double>(kPredictedSteps);
  }
  if (totals.work.seconds > 0) prediction.extrapolated_share = totals.work.extrapolated_seconds / totals.work.seconds;
  return prediction;
}

LowerBound busiest_stage_bound(const Prediction& prediction) {
  const auto busiest = std::max_element(prediction.stage_busy_share.begin(), prediction.stage_busy_share.end());
  return {prediction.step_seconds * *busiest,
          fmt::format("compute of stage {}", busiest - prediction.stage_busy_share.begin())};
}

}  // namespace braid::planner

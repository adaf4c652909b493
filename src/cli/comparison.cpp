#include "cli/comparison.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/results.h"
#include "planner/durations.h"
#include "planner/predict.h"
#include "sim/replay.h"

namespace braid::cli {
namespace {

double median(std::vector<double> samples) {
  BRAID_CHECK(!samples.empty(), "no windows were compared");
  std::sort(samples.begin(), samples.end());
  const std::size_t middle = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
}

/// Receives only wait, and a group's members wait for each other: their time is no work of their own.
bool is_compared(planner::Kind kind) {
  return !planner::is_recv(kind) && kind != planner::Kind::noop;
}

nlohmann::ordered_json json_of(const Compared& compared) {
  return {{"what", compared.what}, {"predicted", compared.predicted}, {"measured", compared.measured}, {"error", compared.error()}, {"count", compared.count}};
}

nlohmann::ordered_json json_of(const std::vector<Compared>& list) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Compared& compared : list) json.push_back(json_of(compared));
  return json;
}

void print_line(const Compared& compared, const std::string& predicted, const std::string& measured) {
  fmt::print("{:16} {:>12} {:>12} {:>+8.1f} %\n", compared.what, predicted, measured, 100 * compared.error());
}

}  // namespace

Comparison compare(const planner::Plan& plan, const workload::SampleIndex& samples, const exec::TrainResult& result, const std::vector<Bytes>& peaks) {
  Comparison comparison;
  const costmodel::CostModel cost(plan.profile);
  const std::vector<costmodel::AdapterShape> adapters = planner::adapters_of(plan.workload);
  const planner::MemoryContext memory{plan.workload.backbone, adapters, plan.fixed.backbone_copies};
  std::map<planner::Kind, Compared> kinds;
  std::map<planner::StageIndex, Compared> stages;
  std::vector<double> predicted_steps, measured_steps;
  std::vector<Bytes> predicted_peaks(peaks.size(), 0);
  for (std::size_t i = 0; i < result.recorded.size(); ++i) {
    const planner::Program program = planner::window_program(plan.fixed, {plan.workload, samples}, result.recorded[i]);
    const std::vector<planner::StageMemory> memories = planner::walk_memory(program, memory);
    for (std::size_t s = 0; s < memories.size(); ++s) {
      Bytes& peak = predicted_peaks[static_cast<std::size_t>(program.stages[s].ranks.front())];
      peak = std::max(peak, memories[s].peak());
    }
    if (i < kWarmUpWindows) continue;
    ++comparison.windows;
    const planner::Timeline predicted = sim::replay(program, planner::predict_durations(program, plan.workload.backbone, adapters, cost).durations);
    const auto add = [&](const planner::Timeline& timeline, double Compared::*side) {
      for (const planner::Event& event : timeline.events) {
        if (is_compared(event.kind)) kinds[event.kind].*side += seconds(event.end - event.start);
        if (event.stream == planner::Stream::compute) stages[event.stage].*side += seconds(event.end - event.start);
      }
    };
    add(predicted, &Compared::predicted);
    add(result.timelines[i], &Compared::measured);
    for (const planner::Event& event : predicted.events) {
      if (is_compared(event.kind)) ++kinds[event.kind].count;
      if (event.stream == planner::Stream::compute) ++stages[event.stage].count;
    }
    predicted_steps.push_back(seconds(predicted.end() - predicted.begin()));
    measured_steps.push_back(result.window_seconds[i]);
  }
  BRAID_CHECK(comparison.windows > 0, "only warm-up windows were run");
  for (auto& [kind, compared] : kinds) {
    compared.what = name(kind);
    comparison.kinds.push_back(compared);
  }
  for (auto& [stage, compared] : stages) {
    compared.what = fmt::format("stage {}", stage);
    comparison.stages.push_back(compared);
  }
  comparison.step = {"window", median(predicted_steps), median(measured_steps), comparison.windows};
  for (std::size_t rank = 0; rank < peaks.size(); ++rank) {
    comparison.memory.push_back({fmt::format("rank {}", rank), static_cast<double>(predicted_peaks[rank]), static_cast<double>(peaks[rank]), 1});
  }
  return comparison;
}

std::string to_json(const Comparison& comparison) {
  return nlohmann::ordered_json{{"format", 1},
                                {"windows", comparison.windows},
                                {"kinds", json_of(comparison.kinds)},
                                {"stages", json_of(comparison.stages)},
                                {"step_seconds", json_of(comparison.step)},
                                {"peak_memory_bytes", json_of(comparison.memory)}}
             .dump(1) +
         "\n";
}

void print(const Comparison& comparison) {
  fmt::print("{} windows, predicted beside measured\n{:16} {:>12} {:>12} {:>10}\n", comparison.windows, "", "predicted", "measured", "error");
  for (const std::vector<Compared>* list : {&comparison.kinds, &comparison.stages}) {
    for (const Compared& compared : *list) print_line(compared, duration(compared.predicted), duration(compared.measured));
  }
  print_line(comparison.step, duration(comparison.step.predicted), duration(comparison.step.measured));
  for (const Compared& compared : comparison.memory) print_line(compared, megabytes(static_cast<Bytes>(compared.predicted)), megabytes(static_cast<Bytes>(compared.measured)));
}

}  // namespace braid::cli

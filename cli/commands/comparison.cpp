#include "cli/commands/comparison.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/statistics.h"
#include "base/terminal.h"
#include "cli/commands/waits.h"
#include "cli/support/results.h"
#include "exec/profiling/reference_pass.h"
#include "planner/latency/durations.h"
#include "planner/window/predict.h"
#include "planner/window/window.h"
#include "sim/replay.h"

namespace braid::cli {
namespace {

/// Receives only wait: their time is no work of their own.
bool is_compared(planner::Kind kind) {
  return !planner::is_recv(kind);
}

/// How long the parts of one window took, at a machine's pace: 1 is that of the profile, 2 takes twice as long.
struct WindowTimes {
  WindowTimes(const planner::Timeline& timeline, const Waits& waits, double window_seconds, double machine_pace)
      : step(window_seconds), pace(machine_pace) {
    for (const planner::Event& event : timeline.events) {
      const double duration = seconds(event.end - event.start);
      if (is_compared(event.kind)) {
        const double waited = seconds(waits.of(event));
        kinds[event.kind] += duration - waited;
        waiting[event.kind] += waited;
        ++kind_counts[event.kind];
      }
      if (event.stream == planner::Stream::compute) stages[event.stage] += duration;
      ranks.insert(event.rank);
    }
  }

  /// Of all ranks together.
  double idle() const {
    double sum = step * static_cast<double>(ranks.size());
    for (const auto& [stage, busy] : stages) sum -= busy;
    return sum;
  }

  double step = 0;
  double pace = 1;
  std::map<planner::Kind, double> kinds;
  std::map<planner::Kind, double> waiting;  // beside those
  std::map<planner::Kind, std::int64_t> kind_counts;
  std::map<planner::StageIndex, double> stages;
  std::set<std::int32_t> ranks;
};

/// The median over a window's runs of what `part` picks.
template <typename Part>
double median_of(const std::vector<WindowTimes>& runs, const Part& part) {
  std::vector<double> samples;
  for (const WindowTimes& run : runs) samples.push_back(part(run));
  return median(std::move(samples));
}

/// Sums over unlike windows.
struct Totals {
  std::int64_t windows = 0;
  std::int64_t runs = 0;
  double predicted_step = 0, measured_step = 0, step_at_pace = 0;
  double ranks = 0, predicted_idle = 0, measured_idle = 0;
  std::map<planner::Kind, Compared> kinds;
  std::map<planner::StageIndex, Compared> stages;

  void add(const WindowTimes& predicted, const std::vector<WindowTimes>& measured) {
    ++windows;
    runs = static_cast<std::int64_t>(measured.size());
    predicted_step += predicted.step;
    measured_step += median_of(measured, [](const WindowTimes& run) { return run.step; });
    ranks = static_cast<double>(predicted.ranks.size());
    predicted_idle += predicted.idle();
    measured_idle += median_of(measured, [](const WindowTimes& run) { return run.idle(); });
    step_at_pace += median_of(measured, [](const WindowTimes& run) { return run.step / run.pace; });
    for (const auto& [kind, duration] : predicted.kinds) {
      Compared& compared = kinds[kind];
      compared.predicted += duration;
      compared.measured += median_of(measured, [k = kind](const WindowTimes& run) { return run.kinds.at(k); });
      compared.waited += median_of(measured, [k = kind](const WindowTimes& run) { return run.waiting.at(k); });
      compared.count += predicted.kind_counts.at(kind);
    }
    for (const auto& [stage, duration] : predicted.stages) {
      Compared& compared = stages[stage];
      compared.predicted += duration;
      compared.measured += median_of(measured, [s = stage](const WindowTimes& run) { return run.stages.at(s); });
      ++compared.count;
    }
  }

  Comparison comparison() const {
    Comparison comparison;
    comparison.windows = windows;
    comparison.runs = runs;
    for (const auto& [kind, compared] : kinds) {
      comparison.kinds.push_back(compared);
      comparison.kinds.back().what = name(kind);
    }
    for (const auto& [stage, compared] : stages) {
      comparison.stages.push_back(compared);
      comparison.stages.back().what = fmt::format("stage {}", stage);
    }
    const auto count = static_cast<double>(windows);
    comparison.step = {"window", predicted_step / count, measured_step / count, windows};
    comparison.bubble = {"bubble ratio", predicted_idle / (ranks * predicted_step),
                         measured_idle / (ranks * measured_step), windows};
    return comparison;
  }

  Compared step_at_profiled_pace() const {
    const auto count = static_cast<double>(windows);
    return {"at its pace", predicted_step / count, step_at_pace / count, windows};
  }
};

/// Per rank, the larger of what is told so far and what the Program needs.
void raise_peaks(const std::vector<planner::StageMemory>& memories, const planner::Program& program,
                 std::vector<Bytes>& peaks) {
  for (std::size_t s = 0; s < memories.size(); ++s) {
    for (const std::int32_t rank : program.stages[s].ranks) {
      Bytes& peak = peaks[static_cast<std::size_t>(rank)];
      peak = std::max(peak, memories[s].peak());
    }
  }
}

std::vector<std::size_t> after_warm_up(const std::vector<std::size_t>& places, std::size_t warm_up) {
  std::vector<std::size_t> after;
  std::copy_if(places.begin(), places.end(), std::back_inserter(after),
               [&](std::size_t place) { return place >= warm_up; });
  return after;
}

/// Of each recorded window, what reference passes took around the run that it is part of, over the profile's; 1 where
/// that has none.
std::vector<double> paces(const Execution& execution, double profiled) {
  std::vector<double> paces;
  std::size_t run = 0;  // from 1
  for (const exec::RecordedWindow& window : execution.result.recorded) {
    if (window.begins) ++run;
    paces.push_back(profiled > 0 ? exec::reference_around(execution.reference_seconds, run) / profiled : 1);
  }
  return paces;
}

nlohmann::ordered_json json_of(const Compared& compared) {
  return {{"what", compared.what},     {"predicted", compared.predicted}, {"measured", compared.measured},
          {"error", compared.error()}, {"count", compared.count},         {"waited", compared.waited}};
}

nlohmann::ordered_json json_of(const std::vector<Compared>& list) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Compared& compared : list) json.push_back(json_of(compared));
  return json;
}

/// Errors beyond this stand out.
constexpr double kFarOff = 0.1;

void print_line(const Compared& compared, const std::string& predicted, const std::string& measured) {
  const std::string error = fmt::format("{:>+8.1f} %", 100 * compared.error());
  fmt::print("{:23} {:>12} {:>12} {}\n", compared.what, predicted, measured,
             std::abs(compared.error()) > kFarOff ? toned(error, Tone::worse, stdout) : error);
}

}  // namespace

Comparison compare(const planner::Plan& plan, const Execution& execution) {
  const std::vector<exec::RecordedWindow>& recorded = execution.result.recorded;
  // Runs of a stream, as places, by its windows.
  std::map<std::vector<std::int64_t>, std::vector<std::size_t>> streams;
  for (std::size_t first = 0, last = 0; first < recorded.size(); first = last) {
    std::vector<std::int64_t> windows;
    do windows.push_back(recorded[last++].window);
    while (last < recorded.size() && !recorded[last].begins);
    streams[windows].push_back(first);
  }
  const costmodel::CostModel cost(plan.profile);
  planner::ClockLatency latency(cost, plan.workload.backbone);
  const planner::MemoryContext memory = planner::memory_context(plan.fixed, plan.workload);
  std::vector<Bytes> predicted_peaks(execution.peak_memory.size(), 0);
  const double reference = plan.profile.reference_pass_seconds;
  const std::vector<double> pace = paces(execution, reference);
  const FastestMessages fastest = fastest_messages(recorded);
  Totals totals;
  for (const auto& [windows, runs] : streams) {
    const std::vector<std::size_t> warm = after_warm_up(runs, execution.warm_up);
    planner::Clocks clocks;
    Nanoseconds last_end = 0;
    for (std::size_t i = 0; i < windows.size(); ++i) {
      const planner::Program& program = recorded[runs.front() + i].program;
      raise_peaks(planner::walk_memory(program, memory), program, predicted_peaks);
      const auto durations =
          planner::predict_durations(program, planner::pass_style(plan.fixed, plan.workload), latency);
      const planner::Timeline replayed = sim::replay(program, durations.durations, &clocks);
      const Nanoseconds begin = i > 0 ? last_end : replayed.begin();
      last_end = planner::end_of_steps(replayed.events);
      std::vector<WindowTimes> measured;
      for (const std::size_t first : warm)
        measured.emplace_back(recorded[first + i].timeline, waits_in(recorded[first + i], fastest),
                              recorded[first + i].seconds, pace[first + i]);
      if (!measured.empty()) totals.add(WindowTimes(replayed, {}, seconds(last_end - begin), 1), measured);
    }
  }
  BRAID_CHECK(totals.windows > 0, "only warm-up windows were run");
  Comparison comparison = totals.comparison();
  for (std::size_t rank = 0; rank < execution.peak_memory.size(); ++rank) {
    comparison.memory.push_back({fmt::format("rank {}", rank), static_cast<double>(predicted_peaks[rank]),
                                 static_cast<double>(execution.peak_memory[rank]), 1});
  }
  if (reference > 0) {
    comparison.reference_pass = {"reference pass", reference, median(execution.reference_seconds),
                                 static_cast<std::int64_t>(execution.reference_seconds.size())};
    comparison.step_at_profiled_pace = totals.step_at_profiled_pace();
  }
  return comparison;
}

std::string to_json(const Comparison& comparison) {
  nlohmann::ordered_json json = {{"format", 1},
                                 {"windows", comparison.windows},
                                 {"runs", comparison.runs},
                                 {"kinds", json_of(comparison.kinds)},
                                 {"operators", json_of(comparison.operators)},
                                 {"stages", json_of(comparison.stages)},
                                 {"step_seconds", json_of(comparison.step)},
                                 {"bubble_ratio", json_of(comparison.bubble)},
                                 {"peak_memory_bytes", json_of(comparison.memory)}};
  if (comparison.reference_pass) {
    json["step_seconds_at_profiled_pace"] = json_of(*comparison.step_at_profiled_pace);
    json["reference_pass_seconds"] = json_of(*comparison.reference_pass);
  }
  return json.dump(1) + "\n";
}

void print(const Comparison& comparison) {
  fmt::print("{} windows run {} times, predicted beside measured\n", comparison.windows, comparison.runs);
  const std::string heading = fmt::format("{:23} {:>12} {:>12} {:>10}", "", "predicted", "measured", "error");
  fmt::print("{}\n", toned(heading, Tone::heading, stdout));
  const auto print_times = [](const Compared& compared) {
    print_line(compared, duration(compared.predicted), duration(compared.measured));
  };
  for (const std::vector<Compared>* list : {&comparison.operators, &comparison.kinds, &comparison.stages}) {
    for (const Compared& compared : *list) print_times(compared);
  }
  print_times(comparison.step);
  if (comparison.reference_pass) print_times(*comparison.step_at_profiled_pace);
  const Compared& bubble = comparison.bubble;
  fmt::print("{:23} {:>10.1f} % {:>10.1f} % {:>+8.1f} points\n", bubble.what, 100 * bubble.predicted,
             100 * bubble.measured, 100 * (bubble.predicted - bubble.measured));
  for (const Compared& compared : comparison.memory)
    print_line(compared, describe_bytes(static_cast<Bytes>(compared.predicted)),
               describe_bytes(static_cast<Bytes>(compared.measured)));
  for (const Compared& kind : comparison.kinds) {
    if (kind.waited > 0) fmt::print("{} waited {} more for other ranks\n", kind.what, duration(kind.waited));
  }
  if (const auto& reference = comparison.reference_pass)
    fmt::print("the machine's pace: a reference pass took {} for the profile and takes {} now, {:+.1f} %\n",
               duration(reference->predicted), duration(reference->measured),
               100 * (reference->measured / reference->predicted - 1));
}

}  // namespace braid::cli

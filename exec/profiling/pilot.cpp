#include "exec/profiling/pilot.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/statistics.h"
#include "base/steady_clock.h"
#include "exec/profiling/reference_pass.h"
#include "exec/runner.h"
#include "planner/latency/durations.h"
#include "planner/latency/launch_turns.h"
#include "planner/program/dependency_graph.h"
#include "planner/program/excerpt.h"
#include "planner/window/program_stream.h"
#include "planner/window/window.h"

namespace braid::exec {
namespace {

/// So that tasks that take turns have theirs.
constexpr std::int64_t kMostWindows = 4;
/// Short windows are run more often than that, for about so many seconds: what takes milliseconds varies most.
constexpr std::int64_t kUsualRuns = 5, kMostRuns = 40;
constexpr double kUsualSeconds = 2;
/// What is chosen is run twice after it has warmed up, and setting up takes time too.
constexpr double kShareOfRun = 0.25;

/// What is run.
struct Piece {
  planner::Program program;
  double predicted_seconds = 0;
};

double span_of(const std::vector<planner::Event>& events) {
  planner::Timeline timeline;
  timeline.events = events;
  return seconds(planner::end_of_steps(events) - timeline.begin());
}

/// Tells what parts of the plan's windows would take.
class Pieces {
 public:
  Pieces(const planner::Plan& plan, const workload::SampleIndex& samples, const planner::Judge& judge)
      : plan_(plan),
        input_(planner::input_of(plan, samples)),
        judge_(judge),
        cost_(plan.profile),
        latency_(cost_, plan.workload.backbone),
        style_(planner::pass_style(plan.fixed, plan.workload)),
        all_windows_(planner::window_count(plan.fixed, input_)) {}

  /// The most of the most windows whose predicted times add up to at most `seconds`: of each at least as many
  /// microbatches as fill the pipeline, unless one window alone is too long for that. Empty where nothing fits.
  std::vector<Piece> that_fit(double seconds) {
    const std::int64_t filling = plan_.fixed.deployment.front().stages();
    for (std::int64_t windows = std::min(kMostWindows, all_windows_); windows > 0; windows /= 2) {
      const std::vector<planner::Program> whole = programs(windows);
      std::int64_t most = 0;
      for (const planner::Program& program : whole) most = std::max(most, std::ssize(program.microbatches));
      const std::int64_t least = windows > 1 ? std::min(filling, most) : 1;
      for (std::int64_t count = most; count >= least; count = count > least ? std::max(count / 2, least) : 0) {
        std::vector<Piece> pieces;
        double sum = 0;
        for (const planner::Program& program : whole)
          sum += pieces.emplace_back(piece(program, count)).predicted_seconds;
        if (sum <= seconds) return pieces;
      }
    }
    return {};
  }

 private:
  std::vector<planner::Program> programs(std::int64_t count) const {
    std::vector<planner::Program> programs;
    for (std::int64_t i = 0; i < count; ++i)
      programs.push_back(planner::window_program(plan_.fixed, input_, i * all_windows_ / count));
    return programs;
  }

  Piece piece(const planner::Program& whole, std::int64_t microbatches) {
    Piece made{planner::excerpt(whole, microbatches), 0};
    const auto told = planner::predict_durations(made.program, style_, latency_);
    made.predicted_seconds = span_of(judge_(made.program, told.durations).events);
    return made;
  }

  const planner::Plan& plan_;
  planner::WindowInput input_;
  const planner::Judge& judge_;
  costmodel::CostModel cost_;
  planner::ClockLatency latency_;
  planner::PassStyle style_;
  std::int64_t all_windows_;
};

/// From the first rank's first instruction to the last rank's last Step; on rank 0.
double run_once(const planner::Program& program, const planner::StageTurns& turns, Runner& runner,
                Communicator& communicator) {
  const std::vector<std::int64_t> ahead = planner::most_waiting_messages(program);
  communicator.barrier();
  const std::vector<planner::Event> events = runner.run(program, ahead, turns).events;
  planner::Timeline own;
  own.events = events;
  const Nanoseconds mine[2] = {own.begin(), planner::end_of_steps(events)};
  Nanoseconds begin = std::numeric_limits<Nanoseconds>::max(), end = 0;
  for (const std::string& part : communicator.gather({reinterpret_cast<const char*>(mine), sizeof mine})) {
    Nanoseconds theirs[2];
    std::memcpy(theirs, part.data(), sizeof theirs);
    begin = std::min(begin, theirs[0]);
    end = std::max(end, theirs[1]);
  }
  return seconds(end - begin);
}

}  // namespace

Pilot run_pilot(const planner::Plan& plan, const workload::SampleIndex& samples,
                std::span<const workload::Dataset> datasets, const planner::Judge& judge, double seconds,
                Communicator& communicator, kernels::Device& device) {
  const SteadyClock::time_point began = SteadyClock::now();
  const std::vector<Piece> pieces = Pieces(plan, samples, judge).that_fit(kShareOfRun * seconds);
  Pilot pilot;
  if (pieces.empty()) return pilot;
  Runner runner({plan.fixed, plan.workload, samples, datasets}, communicator, device);
  ReferencePass reference(plan.workload.backbone, device);
  const planner::LaunchTurns launches(plan.profile, plan.workload.backbone,
                                      planner::pass_style(plan.fixed, plan.workload));
  std::vector<planner::StageTurns> turns;
  for (const Piece& piece : pieces) turns.push_back(launches.of(piece.program, runner.stage()));
  for (std::size_t i = 0; i < pieces.size(); ++i) run_once(pieces[i].program, turns[i], runner, communicator);
  std::vector<std::vector<double>> measured(pieces.size());  // per piece and run
  std::vector<double> references;
  const SteadyClock::time_point warm = SteadyClock::now();
  for (bool again = true; again;) {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      references.push_back(reference.seconds_beside(pieces[i].predicted_seconds, communicator));
      measured[i].push_back(run_once(pieces[i].program, turns[i], runner, communicator));
    }
    ++pilot.runs;
    const double each = seconds_since(began) / static_cast<double>(pilot.runs + 1);
    const bool tells_enough = pilot.runs >= kUsualRuns && seconds_since(warm) >= kUsualSeconds;
    std::byte more{!tells_enough && pilot.runs < kMostRuns && seconds_since(began) + each < seconds};
    communicator.broadcast(std::span(&more, 1));
    again = more != std::byte{0};
  }
  references.push_back(reference.seconds(communicator));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    std::vector<double> at_pace;
    for (std::size_t run = 0; run < measured[i].size(); ++run) {
      const double now = reference_around(references, run * pieces.size() + i + 1);
      const double usual = plan.profile.reference_pass_seconds;
      at_pace.push_back(usual > 0 ? measured[i][run] * usual / now : measured[i][run]);
    }
    pilot.measured_seconds += median(std::move(at_pace));
    pilot.predicted_seconds += pieces[i].predicted_seconds;
    pilot.microbatches += std::ssize(pieces[i].program.microbatches);
  }
  pilot.windows = std::ssize(pieces);
  return pilot;
}

}  // namespace braid::exec

#include "planner/window_steps.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace braid::planner {
namespace {

bool runs(const WindowInput& input, TaskIndex task, std::int64_t step) {
  if (input.stopped.contains(task)) return false;
  return input.endless() || step < input.samples.steps(task);
}

std::size_t turn_count(const FixedPlan& fixed) {
  return std::max<std::size_t>(1, fixed.turns.size());
}

std::vector<std::int32_t> htasks_of_turn(const FixedPlan& fixed, std::size_t turn) {
  if (!fixed.turns.empty()) return fixed.turns[turn];
  std::vector<std::int32_t> all(fixed.htasks.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::int64_t windows_of_turn(const FixedPlan& fixed, std::size_t turn, const WindowInput& input) {
  std::int64_t steps = 0;
  for (const std::int32_t htask : htasks_of_turn(fixed, turn)) {
    for (const TaskIndex task : fixed.htasks[static_cast<std::size_t>(htask)])
      steps = std::max(steps, input.samples.steps(task));
  }
  return (steps + fixed.steps_per_window - 1) / fixed.steps_per_window;
}

/// A window's turn, and which of the turn's windows it is. Past the end: a turn that there is not.
struct TurnWindow {
  std::size_t turn = 0;
  std::int64_t own = 0;
};

TurnWindow turn_of(const FixedPlan& fixed, const WindowInput& input, std::int64_t window) {
  const std::size_t turns = turn_count(fixed);
  if (input.endless()) {
    const std::int64_t round = window / kQueuedTurn, count = static_cast<std::int64_t>(turns);
    return {static_cast<std::size_t>(round % count), round / count * kQueuedTurn + window % kQueuedTurn};
  }
  for (std::size_t turn = 0; turn < turns; ++turn) {
    const std::int64_t windows = windows_of_turn(fixed, turn, input);
    if (window < windows) return {turn, window};
    window -= windows;
  }
  return {turns, 0};
}

}  // namespace

std::vector<std::int64_t> windows_of_turns(const FixedPlan& fixed, const WindowInput& input) {
  std::vector<std::int64_t> windows;
  for (std::size_t turn = 0; turn < turn_count(fixed); ++turn) windows.push_back(windows_of_turn(fixed, turn, input));
  return windows;
}

std::int64_t window_count(const FixedPlan& fixed, const WindowInput& input) {
  const std::vector<std::int64_t> windows = windows_of_turns(fixed, input);
  return std::accumulate(windows.begin(), windows.end(), std::int64_t{0});
}

std::vector<WindowStep> window_steps(const FixedPlan& fixed, const WindowInput& input, std::int64_t window) {
  const auto [turn, own] = turn_of(fixed, input, window);
  if (turn == turn_count(fixed)) return {};
  std::vector<WindowStep> steps;
  const std::vector<std::int32_t> htasks = htasks_of_turn(fixed, turn);
  for (std::int64_t round = 0; round < fixed.steps_per_window; ++round) {
    const std::int64_t batch = own * fixed.steps_per_window + round;
    for (const std::int32_t htask : htasks) {
      for (const TaskIndex task : fixed.htasks[static_cast<std::size_t>(htask)]) {
        if (runs(input, task, batch)) steps.push_back({htask, task, batch});
      }
    }
  }
  return steps;
}

std::int64_t end_of_turn(const FixedPlan& fixed, const WindowInput& input, std::int64_t window) {
  if (input.endless()) {
    const bool alone = turn_count(fixed) == 1;
    return alone ? std::numeric_limits<std::int64_t>::max() : (window / kQueuedTurn + 1) * kQueuedTurn;
  }
  std::int64_t end = 0;
  for (const std::int64_t windows : windows_of_turns(fixed, input)) {
    end += windows;
    if (window < end) break;
  }
  return end;
}

std::vector<std::int64_t> steps_before(const FixedPlan& fixed, const WindowInput& input, std::int64_t window) {
  std::vector<std::int64_t> taken(input.workload.tasks.size(), 0);
  const auto [now, own] = turn_of(fixed, input, window);
  for (std::size_t turn = 0; turn < turn_count(fixed); ++turn) {
    std::int64_t windows = own;
    if (turn != now && input.endless()) {
      // In rounds of kQueuedTurn windows each: those before the one that has its turn are a round ahead.
      windows = (own / kQueuedTurn + (turn < now ? 1 : 0)) * kQueuedTurn;
    } else if (turn != now) {
      windows = turn < now ? windows_of_turn(fixed, turn, input) : 0;
    }
    const std::int64_t steps = windows * fixed.steps_per_window;
    for (const std::int32_t htask : htasks_of_turn(fixed, turn)) {
      for (const TaskIndex task : fixed.htasks[static_cast<std::size_t>(htask)])
        taken[static_cast<std::size_t>(task)] = input.endless() ? steps : std::min(steps, input.samples.steps(task));
    }
  }
  return taken;
}

}  // namespace braid::planner

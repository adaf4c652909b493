#include "planner/window_steps.h"

#include <algorithm>

namespace braid::planner {
namespace {

bool runs(const WindowInput& input, TaskIndex task, std::int64_t step) {
  if (input.stopped.contains(task)) return false;
  return input.endless || step < input.samples.steps(task);
}

std::int64_t windows_of_htask(const FixedPlan& fixed, const std::vector<TaskIndex>& htask, const WindowInput& input) {
  std::int64_t steps = 0;
  for (const TaskIndex task : htask) steps = std::max(steps, input.samples.steps(task));
  return (steps + fixed.steps_per_window - 1) / fixed.steps_per_window;
}

/// Which hTask has its turn in a window of queued tasks, and which of its windows it is; {-1, 0} past the end.
std::pair<std::int32_t, std::int64_t> queued_turn(const FixedPlan& fixed, const WindowInput& input,
                                                  std::int64_t window) {
  const auto htasks = static_cast<std::int64_t>(fixed.htasks.size());
  if (input.endless) {
    const std::int64_t turn = window / kQueuedTurn;
    return {static_cast<std::int32_t>(turn % htasks), turn / htasks * kQueuedTurn + window % kQueuedTurn};
  }
  for (std::size_t h = 0; h < fixed.htasks.size(); ++h) {
    const std::int64_t windows = windows_of_htask(fixed, fixed.htasks[h], input);
    if (window < windows) return {static_cast<std::int32_t>(h), window};
    window -= windows;
  }
  return {kNone, 0};
}

}  // namespace

std::int64_t window_count(const FixedPlan& fixed, const WindowInput& input) {
  std::int64_t count = 0;
  for (const std::vector<TaskIndex>& htask : fixed.htasks) {
    const std::int64_t windows = windows_of_htask(fixed, htask, input);
    count = fixed.turns == Turns::queued ? count + windows : std::max(count, windows);
  }
  return count;
}

std::vector<WindowStep> window_steps(const FixedPlan& fixed, const WindowInput& input, std::int64_t window) {
  std::int32_t first = 0, last = static_cast<std::int32_t>(fixed.htasks.size());
  std::int64_t place = window;  // of the window among its hTasks'
  if (fixed.turns == Turns::queued) {
    const auto [htask, own] = queued_turn(fixed, input, window);
    if (htask == kNone) return {};
    first = htask, last = htask + 1, place = own;
  }
  std::vector<WindowStep> steps;
  for (std::int64_t round = 0; round < fixed.steps_per_window; ++round) {
    const std::int64_t batch = place * fixed.steps_per_window + round;
    for (std::int32_t htask = first; htask < last; ++htask) {
      for (const TaskIndex task : fixed.htasks[static_cast<std::size_t>(htask)]) {
        if (runs(input, task, batch)) steps.push_back({htask, task, batch});
      }
    }
  }
  return steps;
}

std::vector<std::int64_t> steps_before(const FixedPlan& fixed, const WindowInput& input, std::int64_t window) {
  std::vector<std::int64_t> taken(input.workload.tasks.size(), 0);
  for (std::size_t h = 0; h < fixed.htasks.size(); ++h) {
    std::int64_t windows = window;
    if (fixed.turns == Turns::queued) {
      const auto [now, own] = queued_turn(fixed, input, window);
      const auto mine = static_cast<std::int32_t>(h);
      if (now == mine) {
        windows = own;
      } else if (input.endless) {
        // In rounds of kQueuedTurn windows each: those before the one that has its turn are a round ahead.
        windows = (own / kQueuedTurn + (mine < now ? 1 : 0)) * kQueuedTurn;
      } else {
        windows = now == kNone || mine < now ? windows_of_htask(fixed, fixed.htasks[h], input) : 0;
      }
    }
    const std::int64_t steps = windows * fixed.steps_per_window;
    for (const TaskIndex task : fixed.htasks[h])
      taken[static_cast<std::size_t>(task)] = input.endless ? steps : std::min(steps, input.samples.steps(task));
  }
  return taken;
}

}  // namespace braid::planner

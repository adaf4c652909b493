#include "planner/window/window_steps.h"

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
  return std::max<std::size_t>(1, fixed.schedule.turns.size());
}

std::vector<std::int32_t> htasks_of_turn(const FixedPlan& fixed, std::size_t turn) {
  if (!fixed.schedule.turns.empty()) return fixed.schedule.turns[turn];
  std::vector<std::int32_t> all(fixed.htasks.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::int64_t windows_of_turn(const FixedPlan& fixed, std::span<const std::int32_t> htasks, const WindowInput& input) {
  std::int64_t steps = 0;
  for (const std::int32_t htask : htasks) {
    for (const TaskIndex task : fixed.htasks[static_cast<std::size_t>(htask)])
      steps = std::max(steps, input.samples.steps(task) - input.taken_by(task));
  }
  return (steps + fixed.schedule.steps_per_window - 1) / fixed.schedule.steps_per_window;
}

/// What runs in a window; past the end nothing.
struct Standing {
  std::vector<std::int32_t> running;
  std::vector<std::int64_t> had;  ///< per hTask, how many windows before this one
};

/// Turn by turn, kQueuedTurn windows of each, again and again.
Standing endless_standing(const FixedPlan& fixed, std::int64_t window) {
  const auto turns = static_cast<std::int64_t>(turn_count(fixed));
  const std::int64_t round = window / kQueuedTurn, now = round % turns;
  Standing standing{htasks_of_turn(fixed, static_cast<std::size_t>(now)),
                    std::vector<std::int64_t>(fixed.htasks.size(), 0)};
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    // Those before the one that has its turn are a round ahead.
    const std::int64_t had = turn == now ? round / turns * kQueuedTurn + window % kQueuedTurn
                                         : (round / turns + (turn < now ? 1 : 0)) * kQueuedTurn;
    for (const std::int32_t htask : htasks_of_turn(fixed, static_cast<std::size_t>(turn)))
      standing.had[static_cast<std::size_t>(htask)] = had;
  }
  return standing;
}

Standing standing_at(const FixedPlan& fixed, const WindowInput& input, std::int64_t window) {
  if (input.endless()) return endless_standing(fixed, window);
  Standing standing{{}, std::vector<std::int64_t>(fixed.htasks.size(), 0)};
  for (const Admission& admission : course_of(fixed, input)) {
    const std::int64_t windows = std::min(window, admission.windows);
    for (const std::int32_t htask : admission.htasks) standing.had[static_cast<std::size_t>(htask)] += windows;
    window -= windows;
    if (windows == admission.windows) continue;
    standing.running = admission.htasks;
    break;
  }
  return standing;
}

}  // namespace

WindowInput input_of(const Plan& plan, const workload::SampleIndex& samples) {
  return {plan.workload, samples, {}, 0, plan.taken};
}

std::vector<Admission> course_of(const FixedPlan& fixed, const WindowInput& input) {
  if (!fixed.schedule.admissions.empty()) return fixed.schedule.admissions;
  std::vector<Admission> course;
  for (std::size_t turn = 0; turn < turn_count(fixed); ++turn) {
    std::vector<std::int32_t> htasks = htasks_of_turn(fixed, turn);
    course.push_back({windows_of_turn(fixed, htasks, input), std::move(htasks)});
  }
  return course;
}

std::int64_t window_count(const FixedPlan& fixed, const WindowInput& input) {
  std::int64_t windows = 0;
  for (const Admission& admission : course_of(fixed, input)) windows += admission.windows;
  return windows;
}

std::vector<WindowStep> window_steps(const FixedPlan& fixed, const WindowInput& input, std::int64_t window) {
  const Standing standing = standing_at(fixed, input, window);
  std::vector<WindowStep> steps;
  for (std::int64_t round = 0; round < fixed.schedule.steps_per_window; ++round) {
    for (const std::int32_t htask : standing.running) {
      const std::int64_t batch =
          standing.had[static_cast<std::size_t>(htask)] * fixed.schedule.steps_per_window + round;
      for (const TaskIndex task : fixed.htasks[static_cast<std::size_t>(htask)]) {
        if (runs(input, task, input.taken_by(task) + batch))
          steps.push_back({round, htask, task, input.taken_by(task) + batch});
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
  for (const Admission& admission : course_of(fixed, input)) {
    end += admission.windows;
    if (window < end) break;
  }
  return end;
}

std::vector<std::int64_t> steps_before(const FixedPlan& fixed, const WindowInput& input, std::int64_t window) {
  const Standing standing = standing_at(fixed, input, window);
  std::vector<std::int64_t> taken = input.taken;
  taken.resize(input.workload.tasks.size(), 0);
  for (std::size_t htask = 0; htask < fixed.htasks.size(); ++htask) {
    const std::int64_t steps = standing.had[htask] * fixed.schedule.steps_per_window;
    for (const TaskIndex task : fixed.htasks[htask]) {
      const std::int64_t all = input.taken_by(task) + steps;
      taken[static_cast<std::size_t>(task)] = input.endless() ? all : std::min(all, input.samples.steps(task));
    }
  }
  return taken;
}

}  // namespace braid::planner

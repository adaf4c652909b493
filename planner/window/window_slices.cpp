#include "planner/window/window_slices.h"

#include <algorithm>

namespace braid::planner {
namespace {

/// A pipeline that drains is empty before every step; a stream settles in few steps from when it begins.
Stretch stretch_of(const FixedPlan& fixed, Outlook outlook) {
  const bool full = outlook == Outlook::full;
  if (!streams(fixed)) return {0, full ? kPredictedSteps : 1};
  return full ? Stretch{4, kPredictedSteps} : Stretch{2, 1};
}

/// The plan in windows of one step where it drains, else of all steps that are looked at.
FixedPlan in_windows(FixedPlan fixed, const Stretch& stretch) {
  fixed.schedule.steps_per_window = streams(fixed) ? stretch.settling + stretch.steps : 1;
  return fixed;
}

WindowInput without_end(WindowInput input, std::int64_t cycle) {
  input.cycle = cycle;
  input.taken.clear();
  return input;
}

}  // namespace

WindowSlices::WindowSlices(const FixedPlan& plan, const WindowInput& input, Outlook outlook)
    : stretch_(stretch_of(plan, outlook)),
      fixed_(in_windows(plan, stretch_)),
      input_(without_end(input, stretch_.steps)) {}

std::vector<std::int64_t> WindowSlices::windows() const {
  std::vector<std::int64_t> windows;
  const auto turns = static_cast<std::int64_t>(std::max<std::size_t>(1, fixed_.schedule.turns.size()));
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    for (std::int64_t step = 0; step < (streams(fixed_) ? 1 : stretch_.steps); ++step)
      windows.push_back(turn * kQueuedTurn + step);
  }
  return windows;
}

const Slice& WindowSlices::of(std::int64_t window) {
  if (window != slice_.window || slice_.steps.empty())
    slice_ = *ProgramStream(fixed_, input_, window, window + 2).next();
  return slice_;
}

}  // namespace braid::planner

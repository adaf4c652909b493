#pragma once

#include <cstdint>
#include <vector>

#include "planner/window/program_stream.h"

namespace braid::planner {

/// How much of the stream a prediction looks at: to rank many plans, or to tell what one will do.
enum class Outlook {
  glance,  ///< one step of every task; memory of its largest microbatch; no FLOPs
  full     ///< kPredictedSteps of every task; memory of the windows that need the most of a whole run
};

/// The global batches of every task that are measured, after those in which a stream settles.
struct Stretch {
  std::int64_t settling = 0;
  std::int64_t steps = 1;

  bool holds(std::int64_t global_batch) const { return global_batch >= settling && global_batch < settling + steps; }
};

/// The slices of a plan's windows that are looked at, each as its stream begins with it; the last one kept. What the
/// input refers to must outlive it.
class WindowSlices {
 public:
  WindowSlices(const FixedPlan& plan, const WindowInput& input, Outlook outlook);

  const Stretch& stretch() const { return stretch_; }
  /// In windows of one step where the pipeline drains, else of all steps that are looked at.
  const FixedPlan& fixed() const { return fixed_; }
  /// Of a run without end.
  const WindowInput& input() const { return input_; }
  /// Those of the whole stretch, of every turn.
  std::vector<std::int64_t> windows() const;
  /// Of a window that has steps.
  const Slice& of(std::int64_t window);

 private:
  Stretch stretch_;
  FixedPlan fixed_;
  WindowInput input_;
  Slice slice_;
};

}  // namespace braid::planner

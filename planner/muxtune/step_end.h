#pragma once

#include "planner/plan/policy.h"

namespace braid::planner {

/// What ends a step of many tasks whose buckets end one after another, before samples are laid out: their gradients'
/// sums over the replicas and their optimizer steps.
class StepEnd {
 public:
  /// `stage`: the first one's shape, which stands for all.
  StepEnd(const PolicyInput& input, const costmodel::StageShape& stage);

  /// When the step ends whose last pass ends at `makespan`. Gradients are summed and applied task by task when their
  /// bucket has ended: for all but the last one beside other passes, save that a pipeline of one stage has no bubbles
  /// for the optimizer.
  Nanoseconds after(Nanoseconds makespan, Nanoseconds buckets) const;

 private:
  Nanoseconds sync_time(const PolicyInput& input, const costmodel::StageShape& stage) const;
  Nanoseconds step_time(const PolicyInput& input, const costmodel::StageShape& stage) const;

  bool has_bubbles_;
  Nanoseconds tasks_;
  Nanoseconds sync_time_, step_time_;
};

}  // namespace braid::planner

#pragma once

#include <vector>

#include "exec/trainer.h"

namespace braid::cli {

/// How long a run still takes: the data tokens of the steps that are left, which the samples tell, at the seconds that
/// a token took until now; before anything was measured, at those that the plan predicts. And those of the evaluations
/// that are left, at what they took until now, or half of what a token of a step takes: they go forward alone. Nobody
/// knows which trials of a search its rungs will end: of what lies behind a rung each counts with the share of those
/// that are left to go on.
class TimeLeft {
 public:
  /// Of tasks that took so many steps before.
  TimeLeft(const planner::Plan& plan, const workload::SampleIndex& samples, std::span<const std::int64_t> taken);

  void on_window(const exec::WindowReport& report);
  void on_evaluation(const exec::EvaluationReport& report);
  /// A task takes no further step.
  void leave_out(planner::TaskIndex task) {
    for (Stretch& stretch : left_[static_cast<std::size_t>(task)]) stretch = {};
  }

  double seconds() const;
  double tokens_per_second() const;

 private:
  /// What a task has left between two rungs of its search.
  struct Stretch {
    std::int64_t tokens = 0;     // of data
    std::int64_t evaluated = 0;  // of data, in evaluations
  };
  Stretch& stretch_of(planner::TaskIndex task, std::int64_t step);

  exec::Searches searches_;
  std::vector<std::int64_t> taken_;              // steps, per task
  std::vector<std::vector<Stretch>> left_;       // per task
  double evaluated_ = 0, evaluated_tokens_ = 0;  // seconds and tokens of the evaluations until now
  double predicted_seconds_ = 0;                 // of a token
  double measured_ = 0, tokens_ = 0;     // seconds and tokens of all windows but the first, which makes everything
  double first_ = 0, first_tokens_ = 0;  // of that
  bool any_ = false;
};

}  // namespace braid::cli

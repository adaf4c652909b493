#pragma once

#include <utility>
#include <vector>

#include "exec/objectives/objective.h"

namespace braid::exec {

/// The sum of each task's weighted token losses, times its scale.
class TokenLosses final : public Objective {
 public:
  explicit TokenLosses(std::vector<double> scales) : scales_(std::move(scales)), sums_(scales_.size()) {}

  double factor(const SampleRows& rows) const override { return scales_[task_of(rows)]; }
  void take(const SampleRows& rows, double weighted_loss) override {
    sums_[task_of(rows)] += weighted_loss * scales_[task_of(rows)];
  }

  /// Per task.
  const std::vector<double>& sums() const { return sums_; }

 private:
  static std::size_t task_of(const SampleRows& rows) { return static_cast<std::size_t>(rows.sample.task); }

  std::vector<double> scales_, sums_;
};

}  // namespace braid::exec

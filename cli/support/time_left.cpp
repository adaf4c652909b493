#include "cli/support/time_left.h"

#include <algorithm>
#include <numeric>

namespace braid::cli {
namespace {

std::int64_t tokens_of(const workload::SampleIndex& samples, planner::TaskIndex task, std::int64_t step) {
  std::int64_t tokens = 0;
  for (const workload::SampleRef& sample : samples.global_batch(task, step)) tokens += sample.tokens;
  return tokens;
}

std::int64_t held_out_tokens(const workload::SampleIndex& samples, planner::TaskIndex task) {
  std::int64_t tokens = 0;
  for (const workload::SampleSize& sample : samples.held_out(task)) tokens += sample.tokens;
  return tokens;
}

/// Of a task that has taken so many steps.
std::int64_t evaluations_left(const workload::Workload& workload, const workload::SampleIndex& samples,
                              planner::TaskIndex task, std::int64_t taken) {
  const exec::Evaluations none(workload, samples);
  std::int64_t count = 0;
  for (std::int64_t step = taken + 1; step <= samples.steps(task); ++step) count += none.asked_at(task, step) ? 1 : 0;
  return count;
}

}  // namespace

TimeLeft::TimeLeft(const planner::Plan& plan, const workload::SampleIndex& samples,
                   std::span<const std::int64_t> taken) {
  double tokens_a_step = 0;  // of every task one
  for (planner::TaskIndex task = 0; task < static_cast<planner::TaskIndex>(taken.size()); ++task) {
    std::int64_t& left = left_.emplace_back(0);
    const std::int64_t first = taken[static_cast<std::size_t>(task)], steps = samples.steps(task);
    for (std::int64_t step = first; step < steps; ++step) left += tokens_of(samples, task, step);
    evaluated_left_.push_back(evaluations_left(plan.workload, samples, task, first) * held_out_tokens(samples, task));
    if (steps > first) tokens_a_step += static_cast<double>(left) / static_cast<double>(steps - first);
  }
  if (tokens_a_step > 0) predicted_seconds_ = plan.predicted.step_seconds / tokens_a_step;
}

void TimeLeft::on_window(const exec::WindowReport& report) {
  double tokens = 0;
  for (const exec::StepMetrics& step : report.steps) {
    left_[static_cast<std::size_t>(step.task)] -= step.tokens;
    tokens += static_cast<double>(step.tokens);
  }
  (any_ ? measured_ : first_) += report.seconds;
  (any_ ? tokens_ : first_tokens_) += tokens;
  any_ = true;
  for (const planner::TaskIndex task : report.diverged) leave_out(task);
  if (report.cancelled) leave_out(*report.cancelled);
}

void TimeLeft::on_evaluation(const exec::EvaluationReport& report) {
  std::int64_t& left = evaluated_left_[static_cast<std::size_t>(report.task)];
  left = std::max<std::int64_t>(0, left - report.tokens);
  evaluated_ += report.seconds;
  evaluated_tokens_ += static_cast<double>(report.tokens);
}

double TimeLeft::tokens_per_second() const {
  const double seconds = tokens_ > 0 ? measured_ : first_, tokens = tokens_ > 0 ? tokens_ : first_tokens_;
  if (seconds > 0 && tokens > 0) return tokens / seconds;
  return predicted_seconds_ > 0 ? 1 / predicted_seconds_ : 0;
}

double TimeLeft::seconds() const {
  const auto left = static_cast<double>(std::accumulate(left_.begin(), left_.end(), std::int64_t{0}));
  const auto evaluated =
      static_cast<double>(std::accumulate(evaluated_left_.begin(), evaluated_left_.end(), std::int64_t{0}));
  const double rate = tokens_per_second();
  const double evaluation_rate = evaluated_ > 0 ? evaluated_tokens_ / evaluated_ : 2 * rate;
  return rate > 0 ? left / rate + evaluated / evaluation_rate : 0;
}

}  // namespace braid::cli

#include "cli/support/time_left.h"

#include <numeric>

namespace braid::cli {
namespace {

std::int64_t tokens_of(const workload::SampleIndex& samples, planner::TaskIndex task, std::int64_t step) {
  std::int64_t tokens = 0;
  for (const workload::SampleRef& sample : samples.global_batch(task, step)) tokens += sample.tokens;
  return tokens;
}

}  // namespace

TimeLeft::TimeLeft(const planner::Plan& plan, const workload::SampleIndex& samples,
                   std::span<const std::int64_t> taken) {
  double tokens_a_step = 0;  // of every task one
  for (planner::TaskIndex task = 0; task < static_cast<planner::TaskIndex>(taken.size()); ++task) {
    std::int64_t& left = left_.emplace_back(0);
    const std::int64_t first = taken[static_cast<std::size_t>(task)], steps = samples.steps(task);
    for (std::int64_t step = first; step < steps; ++step) left += tokens_of(samples, task, step);
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

double TimeLeft::tokens_per_second() const {
  const double seconds = tokens_ > 0 ? measured_ : first_, tokens = tokens_ > 0 ? tokens_ : first_tokens_;
  if (seconds > 0 && tokens > 0) return tokens / seconds;
  return predicted_seconds_ > 0 ? 1 / predicted_seconds_ : 0;
}

double TimeLeft::seconds() const {
  const auto left = static_cast<double>(std::accumulate(left_.begin(), left_.end(), std::int64_t{0}));
  const double rate = tokens_per_second();
  return rate > 0 ? left / rate : 0;
}

}  // namespace braid::cli

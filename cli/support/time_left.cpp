#include "cli/support/time_left.h"

#include <algorithm>

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

}  // namespace

TimeLeft::TimeLeft(const planner::Plan& plan, const workload::SampleIndex& samples, std::span<const std::int64_t> taken)
    : searches_(plan.workload, samples), taken_(taken.begin(), taken.end()) {
  const exec::Evaluations asked(plan.workload, samples);
  const std::set<planner::TaskIndex> planned = plan.fixed.tasks();
  double tokens_a_step = 0;  // of every task that runs one
  for (planner::TaskIndex task = 0; task < static_cast<planner::TaskIndex>(taken.size()); ++task) {
    left_.emplace_back(searches_.rungs(task).size() + 1);
    const std::int64_t first = taken_[static_cast<std::size_t>(task)], steps = samples.steps(task);
    const std::int64_t evaluated = held_out_tokens(samples, task);
    double tokens = 0;
    for (std::int64_t step = first + 1; step <= steps; ++step) {
      Stretch& stretch = stretch_of(task, step);
      const std::int64_t of_step = tokens_of(samples, task, step - 1);
      stretch.tokens += of_step;
      tokens += static_cast<double>(of_step);
      if (evaluated > 0 && asked.asked_at(task, step)) stretch.evaluated += evaluated;
    }
    if (steps > first && planned.contains(task)) tokens_a_step += tokens / static_cast<double>(steps - first);
  }
  if (tokens_a_step > 0) predicted_seconds_ = plan.predicted.step_seconds / tokens_a_step;
}

TimeLeft::Stretch& TimeLeft::stretch_of(planner::TaskIndex task, std::int64_t step) {
  const std::span<const std::int64_t> rungs = searches_.rungs(task);
  const auto place = std::ranges::lower_bound(rungs, step) - rungs.begin();
  return left_[static_cast<std::size_t>(task)][static_cast<std::size_t>(place)];
}

void TimeLeft::on_window(const exec::WindowReport& report) {
  double tokens = 0;
  for (const exec::StepMetrics& step : report.steps) {
    stretch_of(step.task, step.step).tokens -= step.tokens;
    taken_[static_cast<std::size_t>(step.task)] = step.step;
    tokens += static_cast<double>(step.tokens);
  }
  (any_ ? measured_ : first_) += report.seconds;
  (any_ ? tokens_ : first_tokens_) += tokens;
  any_ = true;
  for (const planner::TaskIndex task : report.diverged) leave_out(task);
  if (report.cancelled) leave_out(*report.cancelled);
}

void TimeLeft::on_evaluation(const exec::EvaluationReport& report) {
  std::int64_t& left = stretch_of(report.task, report.step).evaluated;
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
  double left = 0, evaluated = 0;
  for (std::size_t task = 0; task < left_.size(); ++task) {
    const auto index = static_cast<planner::TaskIndex>(task);
    const std::vector<std::int64_t>& survivors = searches_.survivors(index);
    const std::span<const std::int64_t> rungs = searches_.rungs(index);
    const auto passed = static_cast<std::size_t>(std::ranges::upper_bound(rungs, taken_[task]) - rungs.begin());
    for (std::size_t i = 0; i < left_[task].size(); ++i) {
      // What an evaluation at the rung itself still takes is before it.
      const double share = i <= passed ? 1 : static_cast<double>(survivors[i]) / static_cast<double>(survivors[passed]);
      left += share * static_cast<double>(left_[task][i].tokens);
      evaluated += share * static_cast<double>(left_[task][i].evaluated);
    }
  }
  const double rate = tokens_per_second();
  const double evaluation_rate = evaluated_ > 0 ? evaluated_tokens_ / evaluated_ : 2 * rate;
  return rate > 0 ? left / rate + evaluated / evaluation_rate : 0;
}

}  // namespace braid::cli

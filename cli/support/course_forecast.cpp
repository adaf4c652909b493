#include "cli/support/course_forecast.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "cli/support/replan.h"
#include "cli/support/run_standing.h"
#include "exec/evaluations.h"

namespace braid::cli {
namespace {

using planner::TaskIndex;

/// A run step by step, in stretches in which the same tasks train.
class RunCourse {
 public:
  RunCourse(const planner::Plan& plan, const workload::SampleIndex& samples)
      : plan_(plan), samples_(samples), evaluations_(plan.workload, samples), searches_(plan.workload, samples) {}

  /// Where `losses`, by task, are given, rungs judge trials by them.
  std::pair<double, std::int64_t> seconds_and_steps(const std::vector<double>& losses) {
    RunStanding standing;
    standing.taken.assign(plan_.workload.tasks.size(), 0);
    standing.evaluations.resize(plan_.workload.tasks.size());
    std::set<TaskIndex> training;
    double seconds = 0;
    for (;;) {
      if (!losses.empty()) {
        for (const TaskIndex task : searches_.outranked(standing.evaluations, standing.ended))
          standing.ended[task] = exec::Ended::outranked;
      }
      training = standing.live(plan_.workload, samples_, training);
      if (training.empty()) break;
      std::int64_t steps = std::numeric_limits<std::int64_t>::max();  // until one of them ends or comes to a rung
      for (const TaskIndex task : training)
        steps = std::min(steps, stop_after(task, taken(standing, task), !losses.empty()) - taken(standing, task));
      const double step = step_seconds(training, standing.taken), token = step / tokens_of_step(training);
      seconds += static_cast<double>(steps) * step;
      for (const TaskIndex task : training) {
        const std::int64_t from = taken(standing, task), to = from + steps;
        seconds += evaluated_tokens(task, from, to) * token / 2;
        standing.taken[static_cast<std::size_t>(task)] = to;
        if (!losses.empty() && to > 0 && searches_.rung_until(task, to) == to)
          standing.evaluations[static_cast<std::size_t>(task)].push_back({to, losses[static_cast<std::size_t>(task)]});
      }
    }
    return {seconds, std::accumulate(standing.taken.begin(), standing.taken.end(), std::int64_t{0})};
  }

 private:
  static std::int64_t taken(const RunStanding& standing, TaskIndex task) {
    return standing.taken[static_cast<std::size_t>(task)];
  }
  std::int64_t stop_after(TaskIndex task, std::int64_t taken, bool at_rungs) const {
    if (at_rungs) {
      for (const std::int64_t rung : searches_.rungs(task))
        if (rung > taken) return rung;
    }
    return samples_.steps(task);
  }

  /// As a run has it: the plan that was made, and one for those that train later.
  double step_seconds(const std::set<TaskIndex>& live, const std::vector<std::int64_t>& taken) {
    if (live == plan_.fixed.tasks()) return plan_.predicted.step_seconds;
    const auto [known, fresh] = steps_.try_emplace(alike(live), 0.0);
    if (!fresh) return known->second;
    const auto sizes = [&](TaskIndex task) { return TaskSizes{samples_.sizes(task), samples_.held_out(task)}; };
    return known->second = replan({plan_, plan_.workload, live, taken, sizes}).predicted.step_seconds;
  }

  /// What a step of these tasks takes by: trials that differ by their learning rates alone take as long.
  std::multiset<std::string> alike(const std::set<TaskIndex>& live) const {
    std::multiset<std::string> kinds;
    for (const TaskIndex index : live) {
      workload::Task task = plan_.workload.tasks[static_cast<std::size_t>(index)];
      task.name.clear();
      task.seed = 0;
      task.optimizer = {};
      kinds.insert(workload::to_json(task));
    }
    return kinds;
  }

  double tokens_of_step(const std::set<TaskIndex>& live) const {
    double tokens = 0;
    for (const TaskIndex task : live) {
      const double each =
          static_cast<double>(samples_.total(task).tokens) / static_cast<double>(samples_.samples(task));
      tokens += each * static_cast<double>(plan_.workload.tasks[static_cast<std::size_t>(task)].global_batch_size);
    }
    return tokens;
  }

  /// Of the evaluations after steps (from, to].
  double evaluated_tokens(TaskIndex task, std::int64_t from, std::int64_t to) const {
    double tokens = 0;
    for (const workload::SampleSize& sample : samples_.held_out(task)) tokens += static_cast<double>(sample.tokens);
    if (tokens == 0) return 0;
    std::int64_t count = 0;
    for (std::int64_t step = from + 1; step <= to; ++step) count += evaluations_.asked_at(task, step) ? 1 : 0;
    return tokens * static_cast<double>(count);
  }

  const planner::Plan& plan_;
  const workload::SampleIndex& samples_;
  exec::Evaluations evaluations_;
  exec::Searches searches_;
  std::map<std::multiset<std::string>, double> steps_;  // by the kinds of those that train
};

/// Losses by which rungs end trials that lie evenly among a search's: by task.
std::vector<double> even_losses(const workload::Workload& workload) {
  std::map<std::string, std::vector<TaskIndex>> trials;
  for (std::size_t task = 0; task < workload.tasks.size(); ++task)
    if (const auto& search = workload.tasks[task].search) trials[search->name].push_back(static_cast<TaskIndex>(task));
  std::vector<double> losses(workload.tasks.size(), 0);
  for (auto& [name, left] : trials) {
    const workload::Search& said = *workload.tasks[static_cast<std::size_t>(left.front())].search;
    const std::vector<std::int64_t> survivors = exec::Searches::survivors(std::ssize(left), said.halving, said.keep);
    for (std::size_t rung = 0; rung + 1 < survivors.size(); ++rung) {
      std::vector<TaskIndex> stay;
      for (std::int64_t i = 0; i < survivors[rung + 1]; ++i)
        stay.push_back(left[static_cast<std::size_t>((2 * i + 1) * std::ssize(left) / (2 * survivors[rung + 1]))]);
      for (const TaskIndex task : left)
        if (std::ranges::find(stay, task) == stay.end())
          losses[static_cast<std::size_t>(task)] = static_cast<double>(survivors.size() - rung);
      left = std::move(stay);
    }
  }
  return losses;
}

}  // namespace

bool has_search(const workload::Workload& workload) {
  return std::ranges::any_of(workload.tasks, [](const workload::Task& task) { return task.search.has_value(); });
}

CourseForecast forecast_course(const planner::Plan& plan, const workload::SampleIndex& samples) {
  RunCourse course(plan, samples);
  const auto [seconds, steps] = course.seconds_and_steps({});
  const auto [halved_seconds, halved_steps] = course.seconds_and_steps(even_losses(plan.workload));
  return {seconds, halved_seconds, steps, halved_steps};
}

}  // namespace braid::cli

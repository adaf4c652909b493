#include "cli/support/course_forecast.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "cli/support/replan.h"
#include "exec/evaluations.h"

namespace braid::cli {
namespace {

using planner::TaskIndex;

class RunCourse {
 public:
  RunCourse(const planner::Plan& plan, const workload::SampleIndex& samples)
      : plan_(plan), samples_(samples), evaluations_(plan.workload, samples) {}

  /// Of tasks that end after so many steps each.
  double seconds(std::span<const std::int64_t> ends) {
    double seconds = 0;
    std::int64_t now = 0;
    for (const std::int64_t next : std::set<std::int64_t>(ends.begin(), ends.end())) {
      std::set<TaskIndex> live;
      for (std::size_t task = 0; task < ends.size(); ++task)
        if (ends[task] > now) live.insert(static_cast<TaskIndex>(task));
      const double step = step_seconds(live, now), token = step / tokens_of_step(live);
      seconds += static_cast<double>(next - now) * step;
      for (const TaskIndex task : live) seconds += evaluated_tokens(task, now, next) * token / 2;
      now = next;
    }
    return seconds;
  }

 private:
  /// As a run has it: the plan that was made, and one for those that a search leaves.
  double step_seconds(const std::set<TaskIndex>& live, std::int64_t now) {
    if (live.size() == plan_.workload.tasks.size()) return plan_.predicted.step_seconds;
    const auto known = steps_.find(live);
    if (known != steps_.end()) return known->second;
    std::vector<std::int64_t> taken(plan_.workload.tasks.size(), 0);
    for (const TaskIndex task : live) taken[static_cast<std::size_t>(task)] = std::min(now, samples_.steps(task) - 1);
    const auto sizes = [&](TaskIndex task) { return TaskSizes{samples_.sizes(task), samples_.held_out(task)}; };
    return steps_[live] = replan({plan_, plan_.workload, live, taken, sizes}).predicted.step_seconds;
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
  std::map<std::set<TaskIndex>, double> steps_;  // by those that are left
};

/// Where rungs end tasks, evenly taken from a search's trials.
std::vector<std::int64_t> halved_ends(const workload::Workload& workload, const workload::SampleIndex& samples) {
  const exec::Searches searches(workload, samples);
  std::map<std::string, std::vector<TaskIndex>> trials;
  std::vector<std::int64_t> ends;
  for (TaskIndex task = 0; task < samples.tasks(); ++task) {
    ends.push_back(samples.steps(task));
    if (const auto& search = workload.tasks[static_cast<std::size_t>(task)].search)
      trials[search->name].push_back(task);
  }
  for (auto& [name, left] : trials) {
    const workload::Search& said = *workload.tasks[static_cast<std::size_t>(left.front())].search;
    const std::vector<std::int64_t> survivors = exec::Searches::survivors(std::ssize(left), said.halving, said.keep);
    for (std::size_t rung = 0; rung + 1 < survivors.size(); ++rung) {
      std::vector<TaskIndex> stay;
      for (std::int64_t i = 0; i < survivors[rung + 1]; ++i)
        stay.push_back(left[static_cast<std::size_t>((2 * i + 1) * std::ssize(left) / (2 * survivors[rung + 1]))]);
      for (const TaskIndex task : left)
        if (std::ranges::find(stay, task) == stay.end())
          ends[static_cast<std::size_t>(task)] = searches.rungs(task)[rung];
      left = std::move(stay);
    }
  }
  return ends;
}

}  // namespace

bool has_search(const workload::Workload& workload) {
  return std::ranges::any_of(workload.tasks, [](const workload::Task& task) { return task.search.has_value(); });
}

CourseForecast forecast_course(const planner::Plan& plan, const workload::SampleIndex& samples) {
  std::vector<std::int64_t> ends;
  for (TaskIndex task = 0; task < samples.tasks(); ++task) ends.push_back(samples.steps(task));
  const std::vector<std::int64_t> halved = halved_ends(plan.workload, samples);
  RunCourse course(plan, samples);
  return {course.seconds(ends), course.seconds(halved), std::accumulate(ends.begin(), ends.end(), std::int64_t{0}),
          std::accumulate(halved.begin(), halved.end(), std::int64_t{0})};
}

}  // namespace braid::cli

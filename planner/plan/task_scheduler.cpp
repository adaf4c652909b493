#include "planner/plan/task_scheduler.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace braid::planner {

std::vector<TaskIndex> admit(std::span<const TaskIndex> in_order,
                             const std::function<bool(std::span<const TaskIndex>)>& fits) {
  // Mostly all do.
  if (in_order.empty() || fits(in_order)) return {in_order.begin(), in_order.end()};
  std::vector<TaskIndex> admitted = {in_order.front()};
  for (const TaskIndex task : in_order.subspan(1)) {
    admitted.push_back(task);
    if (!fits(admitted)) admitted.pop_back();
  }
  return admitted;
}

std::vector<std::vector<TaskIndex>> admit_in_turns(std::vector<TaskIndex> in_order,
                                                   const std::function<bool(std::span<const TaskIndex>)>& fits) {
  std::vector<std::vector<TaskIndex>> turns;
  while (!in_order.empty()) {
    const std::vector<TaskIndex> turn = admit(in_order, fits);
    std::erase_if(in_order, [&](TaskIndex task) { return std::find(turn.begin(), turn.end(), task) != turn.end(); });
    turns.push_back(turn);
  }
  return turns;
}

std::vector<Admission> admit_at_borders(std::span<const std::int32_t> in_order, std::vector<std::int64_t> windows,
                                        const std::function<bool(std::span<const std::int32_t>)>& fits) {
  const auto left = [&](std::int32_t htask) -> std::int64_t& { return windows[static_cast<std::size_t>(htask)]; };
  std::vector<std::int32_t> waiting(in_order.begin(), in_order.end());
  std::vector<Admission> admissions;
  while (true) {
    std::erase_if(waiting, [&](std::int32_t htask) { return left(htask) <= 0; });
    if (waiting.empty()) return admissions;
    std::vector<std::int32_t> running = admit(waiting, fits);
    std::int64_t next_end = std::numeric_limits<std::int64_t>::max();
    for (const std::int32_t htask : running) next_end = std::min(next_end, left(htask));
    for (const std::int32_t htask : running) left(htask) -= next_end;
    std::sort(running.begin(), running.end());
    admissions.push_back({next_end, std::move(running)});
  }
}

void TaskScheduler::arrive(const QueuedTask& task) {
  BRAID_CHECK(task.adapter_width > 0, "an adapter of width {}", task.adapter_width);
  const bool known =
      std::any_of(queue_.begin(), queue_.end(), [&](const Entry& entry) { return entry.task.task == task.task; });
  BRAID_CHECK(!known, "task {} is in the queue already", task.task);
  const auto place = std::upper_bound(queue_.begin(), queue_.end(), task,
                                      [](const QueuedTask& a, const Entry& b) { return a.priority > b.task.priority; });
  queue_.insert(place, {task, {}});
}

void TaskScheduler::leave(TaskIndex task) {
  std::erase_if(queue_, [&](const Entry& entry) { return entry.task.task == task; });
}

void TaskScheduler::measured(TaskIndex task, std::span<const Bytes> peaks) {
  BRAID_CHECK(peaks.size() == capacities_.size(), "{} peaks on {} stages", peaks.size(), capacities_.size());
  for (Entry& entry : queue_) {
    if (entry.task.task != task) continue;
    entry.measured.resize(peaks.size(), 0);
    for (std::size_t s = 0; s < peaks.size(); ++s) entry.measured[s] = std::max(entry.measured[s], peaks[s]);
  }
  const QueuedTask& queued = entry(task).task;
  std::vector<costmodel::MemoryLearner>& learners = widths_[queued.adapter_width];
  learners.resize(peaks.size());
  for (std::size_t s = 0; s < peaks.size(); ++s) learners[s].add({queued.batch, queued.length, peaks[s]});
}

const TaskScheduler::Entry& TaskScheduler::entry(TaskIndex task) const {
  const auto found =
      std::find_if(queue_.begin(), queue_.end(), [&](const Entry& entry) { return entry.task.task == task; });
  BRAID_CHECK(found != queue_.end(), "task {} is not in the queue", task);
  return *found;
}

std::optional<double> TaskScheduler::most_bytes(TaskIndex task, std::size_t stage) const {
  const Entry& asked = entry(task);
  // What it took before may have been at the lower end of the error, and be at the upper next.
  if (!asked.measured.empty()) return static_cast<double>(asked.measured[stage]) * (1 + error_) / (1 - error_);
  std::optional<double> most;
  for (const auto& [width, learners] : widths_) {
    const double wider = static_cast<double>(asked.task.adapter_width) / static_cast<double>(width);
    const std::optional<double> by_these =
        learners[stage].most(asked.task.batch, asked.task.length, error_, std::max(1.0, wider));
    if (by_these) most = std::min(*by_these, most.value_or(*by_these));
  }
  return most;
}

std::vector<TaskIndex> TaskScheduler::next() const {
  std::vector<TaskIndex> in_order;
  std::map<TaskIndex, std::vector<double>> most;
  for (const Entry& entry : queue_) {
    const TaskIndex task = entry.task.task;
    in_order.push_back(task);
    for (std::size_t s = 0; s < capacities_.size(); ++s)
      most[task].push_back(most_bytes(task, s).value_or(std::numeric_limits<double>::infinity()));
  }
  return admit(in_order, [&](std::span<const TaskIndex> tasks) {
    for (std::size_t s = 0; s < capacities_.size(); ++s) {
      double total = 0;
      for (const TaskIndex task : tasks) total += most.at(task)[s];
      if (total > static_cast<double>(capacities_[s])) return false;
    }
    return true;
  });
}

std::vector<Admission> admit_while_learning(std::span<const LearnedHTask> htasks, std::vector<Bytes> capacities,
                                            double error) {
  TaskScheduler scheduler(std::move(capacities), error);
  std::map<TaskIndex, std::int64_t> left;
  std::map<TaskIndex, const LearnedHTask*> unmeasured;
  for (const LearnedHTask& htask : htasks) {
    if (htask.windows <= 0) continue;
    scheduler.arrive(htask.queued);
    left[htask.queued.task] = htask.windows;
    unmeasured[htask.queued.task] = &htask;
  }
  std::vector<Admission> admissions;
  while (!left.empty()) {
    std::vector<TaskIndex> running = scheduler.next();
    std::sort(running.begin(), running.end());
    // Until one ends, or the first border at which more is known.
    std::int64_t windows = std::numeric_limits<std::int64_t>::max();
    for (const TaskIndex htask : running) windows = std::min(windows, left.at(htask));
    for (const TaskIndex htask : running) {
      const auto found = unmeasured.find(htask);
      if (found == unmeasured.end()) continue;
      scheduler.measured(htask, found->second->peaks);
      unmeasured.erase(found);
      windows = 1;
    }
    for (const TaskIndex htask : running) {
      if ((left.at(htask) -= windows) > 0) continue;
      scheduler.leave(htask);
      left.erase(htask);
    }
    if (!admissions.empty() && admissions.back().htasks == running) {
      admissions.back().windows += windows;
    } else {
      admissions.push_back({windows, std::move(running)});
    }
  }
  return admissions;
}

}  // namespace braid::planner

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
  const bool known =
      std::any_of(queue_.begin(), queue_.end(), [&](const Entry& entry) { return entry.task.task == task.task; });
  BRAID_CHECK(!known, "task {} is in the queue already", task.task);
  const auto place = std::upper_bound(queue_.begin(), queue_.end(), task,
                                      [](const QueuedTask& a, const Entry& b) { return a.priority > b.task.priority; });
  queue_.insert(place, {task, 0});
}

void TaskScheduler::leave(TaskIndex task) {
  std::erase_if(queue_, [&](const Entry& entry) { return entry.task.task == task; });
}

void TaskScheduler::measured(TaskIndex task, Bytes peak) {
  for (Entry& entry : queue_) {
    if (entry.task.task == task) entry.measured = std::max(entry.measured, peak);
  }
  const QueuedTask& queued = entry(task).task;
  learner_.add({queued.batch, queued.length, peak});
}

const TaskScheduler::Entry& TaskScheduler::entry(TaskIndex task) const {
  const auto found =
      std::find_if(queue_.begin(), queue_.end(), [&](const Entry& entry) { return entry.task.task == task; });
  BRAID_CHECK(found != queue_.end(), "task {} is not in the queue", task);
  return *found;
}

std::optional<double> TaskScheduler::most_bytes(TaskIndex task) const {
  const Entry& asked = entry(task);
  // What it took before may have been at the lower end of the error, and be at the upper next.
  if (asked.measured > 0) return static_cast<double>(asked.measured) * (1 + error_) / (1 - error_);
  return learner_.most(asked.task.batch, asked.task.length, error_);
}

std::vector<TaskIndex> TaskScheduler::next() const {
  std::vector<TaskIndex> in_order;
  std::map<TaskIndex, double> most;
  for (const Entry& entry : queue_) {
    in_order.push_back(entry.task.task);
    most[entry.task.task] = most_bytes(entry.task.task).value_or(std::numeric_limits<double>::infinity());
  }
  return admit(in_order, [&](std::span<const TaskIndex> tasks) {
    double total = 0;
    for (const TaskIndex task : tasks) total += most.at(task);
    return total <= static_cast<double>(capacity_);
  });
}

}  // namespace braid::planner

#include "cli/support/run_status.h"

#include <array>
#include <cmath>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/node.h"

namespace braid::cli {
namespace {

constexpr double kSecondsBetweenStatus = 0.5;

std::vector<std::int64_t> taken_of(const planner::Plan& plan, const exec::Checkpoint* begun) {
  std::vector<std::int64_t> taken(plan.workload.tasks.size(), 0);
  for (std::size_t task = 0; begun && task < taken.size(); ++task) taken[task] = begun->tasks[task].taken;
  return taken;
}

}  // namespace

std::string to_json(const RunStatus& status) {
  nlohmann::ordered_json tasks = nlohmann::ordered_json::array();
  for (const TaskStatus& task : status.tasks) {
    nlohmann::ordered_json line = {
        {"task", task.name}, {"state", task.state}, {"step", task.step}, {"steps", task.steps}};
    line["loss"] = std::isfinite(task.loss) ? nlohmann::ordered_json(task.loss) : nlohmann::ordered_json();
    if (task.best) line["best_evaluation"] = {{"step", task.best->step}, {"eval_loss", task.best->loss}};
    tasks.push_back(std::move(line));
  }
  nlohmann::ordered_json json = {{"format", 1},
                                 {"state", status.state},
                                 {"process", status.process},
                                 {"host", status.host},
                                 {"seconds_left", status.seconds_left},
                                 {"data_tokens_per_second", status.tokens_per_second},
                                 {"tasks", tasks}};
  if (!status.refused.empty()) json["refused"] = status.refused;
  return json.dump(1) + "\n";
}

RunStatus read_run_status(const std::filesystem::path& run) {
  const std::filesystem::path file = run / "status.json";
  if (!std::filesystem::exists(file))
    throw error("{}: holds no run, as there is no status.json; give the folder that `braid train --out` wrote",
                run.string());
  const Node node = parse_json(read_file(file), file.string());
  RunStatus status;
  status.state = node.string_at("state");
  status.process = node.integer_at("process");
  status.host = node.string_at("host");
  status.seconds_left = node.number_at("seconds_left");
  status.tokens_per_second = node.number_at("data_tokens_per_second");
  for (const Node& line : node.at("tasks").sequence("tasks")) {
    TaskStatus& task =
        status.tasks.emplace_back(TaskStatus{line.string_at("task"), line.string_at("state"), line.integer_at("step"),
                                             line.integer_at("steps"), line.number_or("loss", std::nan(""))});
    if (const Node* best = line.find("best_evaluation"))
      task.best = {best->integer_at("step"), best->number_at("eval_loss")};
  }
  if ((status.state == "running" || status.state == "waiting") && !FileLock::held(run / "lock"))
    status.state = "killed";
  return status;
}

StatusKeeper::StatusKeeper(std::filesystem::path run, const planner::Plan& plan, const workload::SampleIndex& samples,
                           const exec::Checkpoint* begun, std::span<const double> losses)
    : file_(std::move(run) / "status.json"), left_(plan, samples, taken_of(plan, begun)) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  status_.host = host.data();
  status_.process = ::getpid();
  for (std::size_t task = 0; task < plan.workload.tasks.size(); ++task) {
    TaskStatus& told = status_.tasks.emplace_back();
    told.name = plan.workload.tasks[task].name;
    told.steps = samples.steps(static_cast<planner::TaskIndex>(task));
    told.loss = losses[task];
    if (plan.paused.contains(static_cast<planner::TaskIndex>(task))) {
      told.state = "paused";
      left_.leave_out(static_cast<planner::TaskIndex>(task));
    }
    if (!begun) continue;
    const exec::TaskState& state = begun->tasks[task];
    told.step = state.taken;
    told.best = exec::best_of(state.evaluations);
    if (state.ended != exec::Ended::no) {
      told.state = name(state.ended);
      left_.leave_out(static_cast<planner::TaskIndex>(task));
    } else if (told.step == told.steps) {
      told.state = "finished";
    }
  }
  write();
}

void StatusKeeper::on_window(const exec::WindowReport& report) {
  left_.on_window(report);
  for (const exec::StepMetrics& step : report.steps) {
    TaskStatus& task = status_.tasks[static_cast<std::size_t>(step.task)];
    task.step = step.step;
    task.loss = step.loss;
    task.state = task.step == task.steps ? "finished" : "running";
  }
  for (const planner::TaskIndex task : report.diverged)
    status_.tasks[static_cast<std::size_t>(task)].state = name(exec::Ended::diverged);
  if (report.cancelled) status_.tasks[static_cast<std::size_t>(*report.cancelled)].state = name(exec::Ended::cancelled);
  if (seconds_since(written_) >= kSecondsBetweenStatus) write();
}

void StatusKeeper::on_evaluation(const exec::EvaluationReport& report) {
  left_.on_evaluation(report);
  TaskStatus& task = status_.tasks[static_cast<std::size_t>(report.task)];
  if (report.best) task.best = {report.step, report.loss.loss};
  if (seconds_since(written_) >= kSecondsBetweenStatus) write();
}

void StatusKeeper::on_ended(planner::TaskIndex task, exec::Ended how) {
  left_.leave_out(task);
  status_.tasks[static_cast<std::size_t>(task)].state = name(how);
}

void StatusKeeper::end(const std::string& state) {
  status_.state = state;
  write();
}

void StatusKeeper::write() {
  status_.seconds_left = left_.seconds();
  status_.tokens_per_second = left_.tokens_per_second();
  try {
    write_file(file_, to_json(status_));
  } catch (const Failure&) {  // on a full disk the run goes on, and what it says grows old
  }
  written_ = SteadyClock::now();
}

}  // namespace braid::cli

#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/support/time_left.h"

namespace braid::cli {

struct TaskStatus {
  std::string name;
  std::string state = "waiting";  ///< waiting, running, paused, finished, diverged, cancelled, early or outranked
  std::int64_t step = 0, steps = 0;
  double loss = 0;                           ///< of its last step; NaN where it has taken none
  std::optional<exec::Evaluated> best = {};  ///< of its evaluations
};

/// How a run stands, as its status.json says.
struct RunStatus {
  /// running, finished or interrupted; waiting: all tasks have ended, and it waits for more; killed: it was at one of
  /// these, and no process is at work in its folder.
  std::string state = "running";
  std::int64_t process = 0;
  std::string host;
  double seconds_left = 0;
  double tokens_per_second = 0;  ///< of data
  std::vector<TaskStatus> tasks;
  std::vector<std::string> refused = {};  ///< of the inbox's requests, with why; status.json has none
};

std::string to_json(const RunStatus& status);
/// Throws Error where the folder holds no run.
RunStatus read_run_status(const std::filesystem::path& run);

/// Keeps a run's status.json, as the run goes and not oftener than every half second.
class StatusKeeper {
 public:
  /// `losses`: of each task the last, of a run before.
  StatusKeeper(std::filesystem::path run, const planner::Plan& plan, const workload::SampleIndex& samples,
               const exec::Checkpoint* begun, std::span<const double> losses);

  void on_window(const exec::WindowReport& report);
  void on_evaluation(const exec::EvaluationReport& report);
  /// It waits for others of its search.
  void on_held(planner::TaskIndex task) { status_.tasks[static_cast<std::size_t>(task)].state = "waiting"; }
  void on_ended(planner::TaskIndex task, exec::Ended how);
  /// "finished", "interrupted" or "waiting".
  void end(const std::string& state);
  const TimeLeft& time_left() const { return left_; }
  const std::vector<TaskStatus>& tasks() const { return status_.tasks; }

 private:
  void write();

  std::filesystem::path file_;
  RunStatus status_;
  TimeLeft left_;
  SteadyClock::time_point written_;
};

}  // namespace braid::cli

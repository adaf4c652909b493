#pragma once

#include <span>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/appended_file.h"
#include "base/steady_clock.h"
#include "cli/support/time_left.h"

namespace braid::cli {

/// Tells of a run as it goes: a line of metrics.jsonl for each task's step, and on stderr a line for each task, often
/// enough to follow and rarely enough to read.
class TrainingLog {
 public:
  /// Of a run that is gone on with from `begun`, what `metrics` says of the steps that each task took is kept.
  TrainingLog(const planner::Plan& plan, const workload::SampleIndex& samples, const std::filesystem::path& metrics,
              bool quiet, const exec::Checkpoint* begun);

  void on_window(const exec::WindowReport& report, const TimeLeft& left);
  void on_evaluation(const exec::EvaluationReport& report);
  void on_ended(planner::TaskIndex task, exec::Ended how) const;
  /// Of each task, the last that was told; NaN of those that have taken no step.
  std::vector<double> last_losses() const;
  /// Writes what could not be written. False where it still cannot.
  bool flush();
  /// The most memory that each rank held, libraries and all.
  void set_most_held(std::vector<Bytes> of_ranks) { most_held_ = std::move(of_ranks); }

  /// How each task and the run as a whole went, with the measured time of a step beside the predicted.
  void print_summary() const;
  std::string summary_json() const;
  /// What steps took beyond the prediction, as a share of it, once all memory was touched; 0 where too few were taken.
  double prediction_error() const;
  /// Of each search its tasks from the best on. `ended`: those that did before their last step.
  void print_rankings(const exec::EndedTasks& ended) const;

 private:
  struct TaskLine {
    double first_loss = 0;
    exec::StepMetrics last;
    std::int64_t steps_before = 0;  ///< done by a run before this one
    std::int64_t steps = 0;         ///< done
    std::int64_t tokens = 0;        ///< data tokens, all steps
    double seconds = 0;             ///< of its windows, each shared evenly among the tasks in it
    std::int64_t warm_steps = 0;    ///< of the steps those after the first window, which makes and touches everything
    double warm_seconds = 0;        ///< likewise
    std::vector<exec::Evaluated> evaluations;
  };

  /// Seconds in which every task advances one step: what a plan's step_seconds predicts. 0
  /// when some task has taken none.
  double measured_step() const;
  std::string kept_metrics(const std::filesystem::path& metrics, const exec::Checkpoint& begun);
  void write_line(const nlohmann::ordered_json& line);
  /// The same of all windows but the first.
  double warm_step() const;
  /// Says so when steps and the plan's prediction part by more than a tenth, and when they meet again.
  void compare_with_plan(const exec::WindowReport& report);
  void write_metrics(const exec::WindowReport& report);
  void print_progress(const exec::WindowReport& report, const TimeLeft& left);

  const planner::Plan& plan_;
  const workload::SampleIndex& samples_;
  AppendedFile metrics_;
  bool told_of_waiting_ = false;  // that metrics cannot be written
  bool quiet_;
  std::vector<TaskLine> lines_;
  std::int64_t computed_tokens_ = 0;
  double flops_ = 0;
  double seconds_ = 0;
  std::vector<Bytes> most_held_;
  std::int64_t windows_seen_ = 0;
  bool parted_ = false;  ///< steps take other than predicted, and that was said
  SteadyClock::time_point last_print_;
};

}  // namespace braid::cli

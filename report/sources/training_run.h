#pragma once

#include <filesystem>
#include <optional>

#include "report/sources/plan_summary.h"
#include "report/sources/trace.h"

namespace braid::report {

/// The folder that `braid train --out` writes.
struct TrainingRun {
  struct Step {
    std::int64_t step = 0;
    double loss = 0, tokens = 0, seconds = 0;
    std::optional<double> reward_accuracy = {};
  };
  struct Evaluation {
    std::int64_t step = 0;
    double loss = 0;
  };
  struct Task {
    std::string name, state;
    std::int64_t taken = 0, planned = 0;
    std::vector<Step> steps = {};
    std::vector<Evaluation> evaluations = {};
  };
  struct Change {
    std::string what;
    double planning_seconds = 0, predicted_seconds = 0, measured_seconds = 0;
  };

  std::filesystem::path folder;
  std::string state = {};
  std::vector<Task> tasks = {};
  std::vector<Change> changes = {};
  std::optional<PlanSummary> plan = {};
  std::optional<Trace> trace = {};
};

bool is_training_run(const std::filesystem::path& folder);
/// Throws Error where a file of it is malformed; a last line that was cut short by a crash is left out.
TrainingRun read_training_run(const std::filesystem::path& folder);

}  // namespace braid::report

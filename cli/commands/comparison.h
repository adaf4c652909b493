#pragma once

#include <optional>
#include <string>
#include <vector>

#include "exec/trainer.h"
#include "planner/plan/plan.h"

namespace braid::cli {

/// A figure twice: as predicted, and as measured.
struct Compared {
  std::string what;
  double predicted = 0;
  double measured = 0;
  std::int64_t count = 0;  ///< how many it is made of
  double waited = 0;       ///< seconds beside `measured`: for another rank, which is no work of its own

  /// (predicted − measured) / measured.
  double error() const { return measured != 0 ? (predicted - measured) / measured : 0; }
};

/// One Program, executed and replayed: the signed errors of the prediction. Times of a window that ran several times
/// are medians over its runs.
struct Comparison {
  std::int64_t windows = 0;         ///< unlike windows compared
  std::int64_t runs = 0;            ///< of each, after warm-up
  std::vector<Compared> kinds;      ///< seconds of work, summed over ranks and windows, per instruction kind
  std::vector<Compared> operators;  ///< seconds by themselves, by kind and pass (compare_operators); may be empty
  std::vector<Compared> stages;     ///< busy seconds of compute, summed over windows
  Compared step;                    ///< seconds of a window, their mean
  Compared bubble;                  ///< share of the ranks' time in which they compute nothing
  /// The same, with what was measured divided by the machine's pace at that moment: what the reference passes
  /// around a run took over what one took for the profile. Nothing where the profile has none.
  std::optional<Compared> step_at_profiled_pace;
  std::optional<Compared> reference_pass;  ///< seconds: for the profile, and the median between windows
  std::vector<Compared> memory;            ///< peak bytes of each rank
};

/// What was executed: each window's runs in a row of `result`, the first `warm_up` of all left out.
struct Execution {
  exec::TrainResult result;
  std::size_t warm_up = 0;
  std::vector<Bytes> peak_memory;  ///< of each rank
  /// Of the reference pass: before each window that began with nothing under way, and after the last.
  std::vector<double> reference_seconds;
};

/// Holds the executed windows against their replay with the plan's profile; those that ran as one stream are replayed
/// as one.
Comparison compare(const planner::Plan& plan, const Execution& execution);

std::string to_json(const Comparison& comparison);
void print(const Comparison& comparison);

}  // namespace braid::cli

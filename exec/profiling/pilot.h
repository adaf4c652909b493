#pragma once

#include <span>

#include "exec/ranks/communicator.h"
#include "kernels/device.h"
#include "planner/plan/plan.h"
#include "planner/program/timeline.h"
#include "workload/text/dataset.h"

namespace braid::exec {

/// How a few microbatches of a plan went, beside what the plan's profile predicts of them.
struct Pilot {
  std::int64_t windows = 0;       ///< that they are of, evenly over the run
  std::int64_t microbatches = 0;  ///< of all of these
  std::int64_t runs = 0;          ///< of each window's, after one to warm up; 0: there is no time for any
  double predicted_seconds = 0;   ///< of the windows' Programs, one after another
  double measured_seconds = 0;    ///< likewise, of each the median over its runs, at the pace of the profile
};

/// Runs the beginning of some windows of `plan` (excerpt.h), as many microbatches as fit `seconds`, all of them where
/// the windows are short, and several times over while there is time; adapters and data are the plan's, nothing is
/// kept. The profile's reference pass (reference_pass.h) tells the machine's pace. Every rank of the plan calls this;
/// rank 0 has the result. Throws Error as Runner does.
Pilot run_pilot(const planner::Plan& plan, const workload::SampleIndex& samples,
                std::span<const workload::Dataset> datasets, const planner::Judge& judge, double seconds,
                Communicator& communicator, kernels::Device& device);

}  // namespace braid::exec

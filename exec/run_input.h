#pragma once

#include <span>

#include "planner/plan/plan.h"
#include "workload/text/dataset.h"

namespace braid::exec {

/// What a run works on; all of it outlives the runner.
struct RunInput {
  const planner::FixedPlan& fixed;
  const workload::Workload& workload;
  const workload::SampleIndex& samples;
  std::span<const workload::Dataset> datasets;
};

}  // namespace braid::exec

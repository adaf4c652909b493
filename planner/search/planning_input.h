#pragma once

#include "planner/plan/policy.h"
#include "planner/window/predict.h"

namespace braid::planner {

/// All that planning reads.
struct PlanningInput {
  const workload::Workload& workload;
  const workload::Cluster& cluster;
  const workload::SampleIndex& samples;
  const costmodel::CostModel& cost;
  Judge judge;
  Overrides overrides;
};

}  // namespace braid::planner

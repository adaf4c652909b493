#pragma once

#include "planner/policy.h"
#include "planner/predict.h"

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

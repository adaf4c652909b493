#pragma once

#include "planner/policy.h"
#include "planner/predict.h"

namespace braid::planner {

/// What the command line fixes that a policy would search.
struct Overrides {
  std::optional<std::int64_t> tp;
  std::optional<std::int64_t> pp;
  std::optional<std::int64_t> microbatches;
};

/// All that planning reads.
struct PlanningInput {
  const workload::Workload& workload;
  const workload::Cluster& cluster;
  const workload::SampleIndex& samples;
  const costmodel::CostModel& cost;
  Judge judge;
  Overrides overrides;
};

/// Plans one policy: places the layers, searches the number of microbatches for the least predicted step time among
/// those that fit memory, and verifies the first window. Deterministic: it counts replays, not seconds.
///
/// Throws Error when there are more stages than layers, more ranks than the cluster has, or when some task does not fit
/// memory with any number of microbatches; the message names the task and the bytes it misses by.
Plan make_plan(const PlanningInput& input, const PolicyChoice& choice);

/// Throws the Errors about stages, layers and ranks that make_plan would, before anything is measured.
void check_placement(const workload::Workload& workload, const workload::Cluster& cluster, const Overrides& overrides);

/// Layers split as evenly as can be, the earlier stages taking one more: the last has the head.
std::vector<LayerRange> even_layers(std::int64_t layers, std::int64_t stages);

}  // namespace braid::planner

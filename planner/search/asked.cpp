#include "planner/search/asked.h"

#include <algorithm>

#include "base/error.h"
#include "planner/search/make_plan.h"

namespace braid::planner {
namespace {

void check_microbatches(const workload::Workload& workload, const Overrides& overrides) {
  const std::int64_t most = largest_batch(workload), given = overrides.microbatches.value_or(1);
  if (given < 1 || given > most)
    throw error("--microbatches {} is not usable; give 1..{}, the samples of the largest global batch", given, most);
}

void check_executed(const PolicyChoice& choice) {
  for (const auto& [option, value] : choice.options) {
    if ((option == "kernels" && value == "fused") || (option == "pruning" && value == "off"))
      throw error("policy {}: {}={} are kernels that are simulated only, for GPUs that a cluster names; leave it out",
                  choice.policy->name(), option, value);
    if (option == "sequence_parallel" && value == "on")
      throw error("policy {}: sequence_parallel=on is simulated only, for GPUs that a cluster names; leave it out",
                  choice.policy->name());
    if (option == "overlap" && value == "off")
      throw error("policy {}: overlap=off is simulated only, for GPUs that a cluster names; leave it out",
                  choice.policy->name());
  }
}

/// Refuses what has no meaning for a policy that finds deployments and microbatches itself.
void check_proposer(const Overrides& overrides, const PolicyChoice& choice) {
  if (!choice.policy->proposes()) return;
  if (overrides.microbatches)
    throw error("--microbatches does not go with {}, whose microbatches hold as many samples as fit; leave it out",
                choice.policy->name());
  if (!choice.policy->takes(overrides.split))
    throw error("--layers does not go with {}, whose replicas split layers evenly; leave it out",
                choice.policy->name());
}

}  // namespace

std::int64_t largest_batch(const workload::Workload& workload) {
  std::int64_t most = 1;
  for (const workload::Task& task : workload.tasks) most = std::max(most, task.global_batch_size);
  return most;
}

Parallelism searched_parallelism(const workload::Cluster& cluster, const Overrides& overrides,
                                 const PolicyChoice& choice) {
  Parallelism parallelism = choice.policy->parallelism(choice.options);
  if (cluster.own()) {
    parallelism.tensor = parallelism.tensor && overrides.tp.has_value();
  }
  return parallelism;
}

void check_placement(const workload::Workload& workload, const workload::Cluster& cluster, const Overrides& overrides,
                     const PolicyChoice& choice) {
  deployments(workload, cluster, overrides, searched_parallelism(cluster, overrides, choice));
  if (cluster.own()) check_executed(choice);
  check_microbatches(workload, overrides);
  check_proposer(overrides, choice);
}

void check_overrides(const workload::Workload& workload, const workload::Cluster& cluster, const Overrides& overrides) {
  deployments(workload, cluster, overrides, {.tensor = true, .pipeline = true, .data = true});
  check_microbatches(workload, overrides);
}

const PlanningInput& checked(const PlanningInput& input, const PolicyChoice& choice) {
  if (input.cost.profile().device.empty()) check_executed(choice);
  check_microbatches(input.workload, input.overrides);
  check_proposer(input.overrides, choice);
  return input;
}

}  // namespace braid::planner

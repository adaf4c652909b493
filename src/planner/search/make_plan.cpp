#include "planner/search/make_plan.h"

#include <deque>

#include "base/error.h"
#include "base/steady_clock.h"
#include "planner/bound/policy_bound.h"
#include "planner/plan/plan_hashes.h"
#include "planner/search/plan_search.h"
#include "planner/search/remedy.h"
#include "planner/window/program_stream.h"
#include "planner/window/run_memory.h"

namespace braid::planner {
namespace {

void verify_telling_windows(const FixedPlan& fixed, const WindowInput& window, Bytes capacity) {
  const VerifyContext rules = verify_context(fixed, window, capacity);
  for (const std::int64_t telling : run_memory(fixed, window).telling_windows) {
    for (const Program& program : programs_around(fixed, window, telling)) {
      const std::vector<Violation> violations = verify(program, rules);
      BRAID_CHECK(violations.empty(), "window {} of the plan breaks the rule '{}': {}", telling,
                  name(violations[0].rule), violations[0].message);
    }
  }
}

}  // namespace

void check_placement(const workload::Workload& workload, const workload::Cluster& cluster, const Overrides& overrides,
                     const PolicyChoice& choice) {
  deployments(workload, cluster, overrides, searched_parallelism(cluster, overrides, choice));
}

Plan make_plan(const PlanningInput& input, const PolicyChoice& choice) {
  const auto began = SteadyClock::now();
  if (input.workload.reproducible)
    throw error("{}: 'reproducible: true' is not supported by this build; set it to false",
                input.workload.file.string());
  std::deque<PlanningInput> inputs;
  std::deque<PlanSearch> searches;
  std::vector<std::vector<ReplicaShape>> grid;
  std::optional<Candidate> best;
  PlanSearch* found = nullptr;
  for (const Overrides& overrides : splits_to_search(input.overrides)) {
    inputs.push_back({input.workload, input.cluster, input.samples, input.cost, input.judge, overrides});
    PlanSearch& search = searches.emplace_back(inputs.back(), choice);
    grid.insert(grid.end(), search.deployments().begin(), search.deployments().end());
    std::optional<Candidate> fastest = search.fastest();
    if (!fastest || (best && best->prediction.step_seconds <= fastest->prediction.step_seconds)) continue;
    best = std::move(fastest);
    found = &search;
  }
  if (!best)
    throw error("{}: {}; {}", input.workload.file.string(),
                describe(searches.front().misfit(), input.workload, choice.policy->name(), searches.front().capacity()),
                cheapest_remedy(input, choice));
  verify_telling_windows(best->arrangement.fixed, found->window(), found->capacity());
  Plan plan;
  plan.workload = input.workload;
  plan.cluster = input.cluster;
  plan.profile = found->cost().profile();
  plan.policy = choice.policy->name();
  plan.options = choice.options;
  plan.lower_bound =
      policy_bound(best->arrangement, grid, input.overrides, found->window(), found->cost(), found->rates());
  plan.fixed = std::move(best->arrangement.fixed);
  plan.reasons = std::move(best->arrangement.reasons);
  plan.predicted = best->prediction;
  plan.data_hashes = data_hashes(input.workload);
  plan.planning_seconds = seconds_since(began);
  return plan;
}

}  // namespace braid::planner

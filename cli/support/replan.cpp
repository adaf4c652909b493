#include "cli/support/replan.h"

#include "base/error.h"
#include "cli/support/session.h"
#include "planner/policies/registry.h"
#include "planner/search/make_plan.h"

namespace braid::cli {
namespace {

using planner::TaskIndex;

/// The ranks that run.
workload::Cluster running_part(const planner::Plan& plan) {
  workload::Cluster cluster = plan.cluster;
  if (cluster.gpus() == plan.ranks()) return cluster;
  cluster.nodes = 1;
  cluster.gpus_per_node = plan.ranks();
  return cluster;
}

/// Of like replicas the shape that they have.
std::optional<planner::Overrides> shape_that_runs(const planner::Plan& plan) {
  const planner::ReplicaShape& first = plan.fixed.deployment.front();
  for (const planner::ReplicaShape& replica : plan.fixed.deployment)
    if (replica.tp != first.tp || replica.stages() != first.stages()) return std::nullopt;
  planner::Overrides overrides = plan.asked;
  overrides.tp = first.tp;
  overrides.pp = first.stages();
  return overrides;
}

}  // namespace

planner::Plan replan(const Replanned& asked) {
  const planner::Plan& now = asked.now;
  workload::Workload some = asked.whole;
  some.tasks.clear();
  std::vector<std::vector<workload::SampleSize>> sizes, held_out;
  const std::vector<TaskIndex> places(asked.live.begin(), asked.live.end());
  for (const TaskIndex task : places) {
    const auto place = static_cast<std::size_t>(task);
    TaskSizes of_task = asked.sizes(task);
    workload::Task& rest = some.tasks.emplace_back(asked.whole.tasks[place]);
    rest.steps = workload::steps_of(rest, std::ssize(of_task.learned)) - asked.taken[place];
    rest.epochs.reset();
    sizes.push_back(std::move(of_task.learned));
    held_out.push_back(std::move(of_task.held_out));
  }
  const workload::SampleIndex samples(some.tasks, std::move(sizes), std::move(held_out));
  const workload::Cluster cluster = running_part(now);
  const costmodel::CostModel cost(now.profile);
  const planner::PolicyChoice choice{planner::parse_policy(now.policy).policy, now.options};
  planner::PlanningInput input{some,
                               cluster,
                               samples,
                               cost,
                               judge_by_replay(),
                               now.asked,
                               now.preferred ? planner::Preference::memory : planner::Preference::speed};
  input.known_hashes = now.data_hashes;
  input.on_progress = asked.on_progress;
  planner::Plan plan = planner::make_plan(input, choice);
  if (plan.ranks() != now.ranks()) {
    const std::optional<planner::Overrides> same = shape_that_runs(now);
    if (!same) throw error("no plan is found for the {} ranks that run", now.ranks());
    input.overrides = *same;
    plan = planner::make_plan(input, choice);
    if (plan.ranks() != now.ranks()) throw error("no plan is found for the {} ranks that run", now.ranks());
  }
  plan.asked = now.asked;
  plan.paused = now.paused;
  plan.cluster = now.cluster;
  // Files of tasks that are not planned for are as they were.
  planner::DataHashes known = now.data_hashes;
  known.insert(known.end(), plan.data_hashes.begin(), plan.data_hashes.end());
  plan.data_hashes = planner::data_hashes(asked.whole, known);
  return planner::plan_among(std::move(plan), asked.whole, places, asked.taken);
}

}  // namespace braid::cli

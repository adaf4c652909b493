#include "cli/session.h"

#include <algorithm>
#include <thread>

#include <fmt/core.h>

#include "base/error.h"
#include "cli/profiles.h"
#include "exec/communicator.h"
#include "planner/plan/plan_hashes.h"
#include "planner/policies/registry.h"
#include "sim/replay.h"

namespace braid::cli {

Data load_data(const workload::Workload& workload, bool need_data) {
  std::vector<workload::Dataset> datasets;
  std::vector<std::vector<workload::SampleSize>> sizes;
  const auto tokenizer = workload::make_tokenizer(workload.backbone_folder, workload.backbone);
  for (const workload::Task& task : workload.tasks) {
    if (task.lengths) {
      if (need_data)
        throw error("{}: task '{}' has lengths in place of data; give it a dataset file to train on",
                    workload.file.string(), task.name);
      datasets.emplace_back();
      sizes.push_back(workload::sample_sizes(task));
      continue;
    }
    datasets.push_back(workload::load_dataset(task.dataset, task, *tokenizer, workload.backbone));
    sizes.push_back(workload::sample_sizes(datasets.back()));
  }
  return {std::move(datasets), workload::SampleIndex(workload.tasks, std::move(sizes))};
}

workload::Cluster read_cluster_flags(const CommonFlags& flags) {
  if (!flags.cluster.empty()) {
    workload::Cluster cluster = workload::read_cluster(flags.cluster);
    if (flags.ranks > 0) {
      cluster.nodes = 1;
      cluster.gpus_per_node = flags.ranks;
    }
    return cluster;
  }
  return workload::local_cluster(flags.ranks > 0 ? flags.ranks : std::max(1U, std::thread::hardware_concurrency()));
}

int threads_of_rank(const CommonFlags& flags, std::int64_t ranks) {
  if (flags.threads > 0) return static_cast<int>(flags.threads);
  return static_cast<int>(std::max<std::int64_t>(1, std::max(1U, std::thread::hardware_concurrency()) / ranks));
}

namespace {

/// What plans of several policies are made from.
struct PlanningSession {
  workload::Workload workload;
  workload::Cluster cluster;
  Data data;
  costmodel::CostModel cost;

  planner::Plan plan(const planner::PolicyChoice& choice, const planner::Overrides& overrides) const {
    const auto judge = [](const planner::Program& program, const planner::Durations& durations) {
      return sim::replay(program, durations);
    };
    return planner::make_plan({workload, cluster, data.samples, cost, judge, overrides}, choice);
  }
};

/// What on_too_long did to samples, said once, as loss of data should be: where the plan is made.
void tell_shortened(const workload::Workload& workload, const Data& data) {
  if (exec::launched_ranks() > 0) return;
  for (std::size_t i = 0; i < workload.tasks.size(); ++i) {
    const workload::Task& task = workload.tasks[i];
    const workload::Dataset& dataset = data.datasets[i];
    if (dataset.truncated == 0 && dataset.dropped == 0) continue;
    fmt::print(stderr, "{}: of {} samples {} were cut to max_length {} and {} dropped\n", task.name,
               static_cast<std::int64_t>(dataset.samples.size()) + dataset.dropped, dataset.truncated, task.max_length,
               dataset.dropped);
  }
}

/// `check` sees workload and cluster before anything is measured.
template <typename Check>
PlanningSession open_session(const CommonFlags& flags, const Check& check) {
  if (flags.workload.empty()) throw error("--workload is missing; give a workload file, such as `braid init` writes");
  workload::Workload workload = workload::read_workload(flags.workload);
  workload::Cluster cluster = read_cluster_flags(flags);
  Data data = load_data(workload, false);
  tell_shortened(workload, data);
  check(workload, cluster);
  costmodel::CostModel cost(profile_for(flags, workload, cluster));
  return {std::move(workload), std::move(cluster), std::move(data), std::move(cost)};
}

}  // namespace

planner::Plan make_plan_from_flags(const CommonFlags& flags) {
  const std::vector<planner::PolicyChoice> choices = planner::parse_policies(flags.policy);
  if (choices.size() != 1) throw error("--policy names {} policies; give one here", choices.size());
  const planner::Overrides overrides = flags.overrides();
  const PlanningSession session = open_session(flags, [&](const auto& workload, const auto& cluster) {
    planner::check_placement(workload, cluster, overrides, choices[0]);
  });
  return session.plan(choices[0], overrides);
}

std::vector<PlanOrError> make_plans_from_flags(const CommonFlags& flags) {
  const planner::Overrides overrides = flags.overrides();
  const PlanningSession session = open_session(flags, [](const auto&, const auto&) {});
  std::vector<PlanOrError> plans;
  for (const planner::PolicyChoice& choice : planner::parse_policies(flags.policy)) {
    PlanOrError& made = plans.emplace_back();
    made.choice = choice;
    try {
      made.plan = session.plan(choice, overrides);
    } catch (const Error& failure) {
      made.error = failure.what();
    }
  }
  return plans;
}

planner::Plan plan_from_flags(const CommonFlags& flags) {
  if (flags.plan.empty()) return make_plan_from_flags(flags);
  planner::Plan plan = planner::read_plan(flags.plan);
  planner::check_data_hashes(plan);
  return plan;
}

std::vector<std::string> task_names(const workload::Workload& workload) {
  std::vector<std::string> names;
  for (const workload::Task& task : workload.tasks) names.push_back(task.name);
  return names;
}

}  // namespace braid::cli

#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cli/support/options.h"
#include "planner/plan/plan.h"
#include "workload/text/dataset.h"

namespace braid::cli {

/// A workload with its data read.
struct Data {
  std::vector<workload::Dataset> datasets;  ///< per task; empty where lengths stand for data
  workload::SampleIndex samples;
};

/// Reads every task's dataset, but those of the first tasks that are `known`. With `need_data`, a task that has only
/// lengths is an Error.
Data load_data(const workload::Workload& workload, bool need_data, std::vector<workload::Dataset> known = {});

/// The cluster that the flags name: a file, or this machine; --ranks in place of its ranks.
workload::Cluster read_cluster_flags(const CommonFlags& flags);

/// The plan that the flags ask for: read from --plan (hashes checked), or made from --workload and --policy.
planner::Plan plan_from_flags(const CommonFlags& flags);

/// Makes a plan from --workload and --policy, which must name one policy. Loads the data, and the profile or measures
/// it.
planner::Plan make_plan_from_flags(const CommonFlags& flags);

/// One policy's plan, or why there is none.
struct PlanOrError {
  planner::PolicyChoice choice;
  std::optional<planner::Plan> plan;
  std::string error;
};
/// Plans every policy that --policy names on the same data and profile. Only what concerns one policy alone (its plan
/// does not fit memory, it lacks a kind of parallelism that was asked for) is kept as its error.
std::vector<PlanOrError> make_plans_from_flags(const CommonFlags& flags);

/// Threads of one rank: --threads, or the cores shared out.
int threads_of_rank(const CommonFlags& flags, std::int64_t ranks);

/// What plans are judged by: the simulator.
planner::Judge judge_by_replay();

std::vector<std::string> task_names(const workload::Workload& workload);

}  // namespace braid::cli

#include "cli/support/session.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/notice.h"
#include "base/steady_clock.h"
#include "base/utf8.h"
#include "cli/support/backend.h"
#include "cli/support/profiles.h"
#include "cli/support/progress.h"
#include "exec/ranks/communicator.h"
#include "planner/milp/exchange.h"
#include "planner/plan/plan_hashes.h"
#include "planner/policies/registry.h"
#include "sim/replay.h"

namespace braid::cli {

namespace {

/// What of a task's schedule may be other than it was meant.
void tell_of_schedule(const workload::Task& task, std::int64_t samples) {
  const std::int64_t steps = workload::steps_of(task, samples);
  if (task.global_batch_size > samples)
    notice(fmt::format("task '{}': each step takes all of its samples, {}, which are fewer than global_batch_size {}",
                       task.name, samples, task.global_batch_size));
  if (task.optimizer.warmup_steps > 0 && task.optimizer.warmup_steps >= steps)
    notice(fmt::format("task '{}': the learning rate does not reach lr, as warmup_steps are {} and its steps {}",
                       task.name, task.optimizer.warmup_steps, steps));
}

}  // namespace

Data load_data(const workload::Workload& workload, bool need_data, std::vector<workload::Dataset> known) {
  std::vector<workload::Dataset> datasets;
  std::vector<std::vector<workload::SampleSize>> sizes, held_out;
  const auto tokenizer = workload::make_tokenizer(workload.backbone_folder, workload.backbone);
  for (const workload::Task& task : workload.tasks) {
    if (task.lengths) {
      if (need_data)
        throw error("{}: task '{}' has lengths in place of data; give it a dataset file to train on",
                    workload.file.string(), task.name);
      datasets.emplace_back();
      sizes.push_back(workload::sample_sizes(task));
      held_out.push_back(workload::held_out_sizes(task));
      continue;
    }
    const std::size_t place = datasets.size();
    datasets.push_back(place < known.size()
                           ? std::move(known[place])
                           : workload::load_task_data(task, *tokenizer, workload.backbone, workload.backbone_folder));
    sizes.push_back(workload::sample_sizes(datasets.back()));
    held_out.push_back(workload::held_out_sizes(datasets.back()));
    tell_of_schedule(task, std::ssize(sizes.back()));
  }
  return {std::move(datasets), workload::SampleIndex(workload.tasks, std::move(sizes), std::move(held_out))};
}

workload::Cluster read_cluster_flags(const CommonFlags& flags) {
  if (!flags.cluster.empty()) {
    workload::Cluster cluster = workload::read_cluster(flags.cluster);
    if (flags.ranks > 0) {
      cluster.nodes = 1;
      cluster.gpus_per_node = flags.ranks;
    }
    if (cluster.own() && is_gpu(backend_of(flags)) != (cluster.gpu == "cuda"))
      throw error("{}: is of gpu: {}, which --backend {} does not compute on; give {}", flags.cluster, cluster.gpu,
                  backend_of(flags), cluster.gpu == "cuda" ? "--backend cuda" : "a cluster of gpu: cuda");
    return cluster;
  }
  const std::string backend = backend_of(flags);
  return workload::local_cluster(flags.ranks > 0 ? flags.ranks : ranks_here(backend), is_gpu(backend) ? "cuda" : "cpu");
}

int threads_of_rank(const CommonFlags& flags, std::int64_t ranks) {
  if (flags.threads > 0) return static_cast<int>(flags.threads);
  return static_cast<int>(std::max<std::int64_t>(1, std::max(1U, std::thread::hardware_concurrency()) / ranks));
}

namespace {

/// What plans of several policies are made from, less the profile.
struct SessionInput {
  workload::Workload workload;
  workload::Cluster cluster;
  Data data;
};

/// What reading did not take of the data, said once, as loss of it should be: where the plan is made, by one rank.
void tell_left_out(const workload::Workload& workload, const Data& data) {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (exec::launched_ranks() > 0 && rank && std::string_view(rank) != "0") return;
  for (std::size_t i = 0; i < workload.tasks.size(); ++i) {
    const workload::Task& task = workload.tasks[i];
    const workload::Dataset& dataset = data.datasets[i];
    const std::int64_t left_out = dataset.dropped + dataset.emptied;
    if (dataset.truncated + left_out > 0)
      fmt::print(stderr, "{}: of {} samples {} were cut to max_length {} and {} dropped{}\n", task.name,
                 static_cast<std::int64_t>(dataset.samples.size()) + left_out, dataset.truncated, task.max_length,
                 left_out, dataset.emptied > 0 ? ", of which the cut left nothing to learn" : "");
    if (!dataset.unread.empty())
      fmt::print(stderr, "{}: columns that are not read: {}\n", task.name,
                 message_line(fmt::format("{}", fmt::join(dataset.unread, ", "))));
    for (const std::string& choice : dataset.preferred)
      fmt::print(stderr, "{}: rows of two kinds are read as TRL reads them: {}\n", task.name, choice);
  }
}

SessionInput read_input(const CommonFlags& flags) {
  if (flags.workload.empty()) throw error("--workload is missing; give a workload file, such as `braid init` writes");
  workload::Workload workload = workload::read_workload(flags.workload);
  workload::Cluster cluster = read_cluster_flags(flags);
  Data data = load_data(workload, false);
  tell_left_out(workload, data);
  return {std::move(workload), std::move(cluster), std::move(data)};
}

void tell_written(const std::string& folder, const std::vector<std::string>& models) {
  if (models.empty()) {
    fmt::print(stderr, "{}: the policy has no mixed-integer programs; nothing is written\n", folder);
    return;
  }
  fmt::print(stderr, "{}: {} mixed-integer programs, each as .lp and .mps: {}{}\n", folder, models.size(),
             fmt::join(models.begin(),
                       models.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(6, models.size())), ", "),
             models.size() > 6 ? ", ..." : "");
}

planner::Plan plan(const SessionInput& input, const CommonFlags& flags, const costmodel::CostModel& cost,
                   const planner::PolicyChoice& choice) {
  Progress progress(fmt::format("planning {}", choice.policy->name()), flags.quiet || exec::launched_ranks() > 0);
  planner::milp::Exchange models(flags.dump_model, flags.solution);
  const bool exchanges = !flags.dump_model.empty() || !flags.solution.empty();
  planner::Plan made =
      planner::make_plan({input.workload, input.cluster, input.data.samples, cost, judge_by_replay(), flags.overrides(),
                          flags.preference(), [&](double share) { progress.update(share); }, flags.plan_budget_seconds,
                          exchanges ? &models : nullptr},
                         choice);
  if (!flags.dump_model.empty() && !flags.quiet) tell_written(flags.dump_model, models.written());
  return made;
}

}  // namespace

planner::Plan make_plan_from_flags(const CommonFlags& flags) {
  const std::vector<planner::PolicyChoice> choices = planner::parse_policies(flags.policy);
  if (choices.size() != 1) throw error("--policy names {} policies; give one here", choices.size());
  const planner::Overrides overrides = flags.overrides();
  if (!flags.solution.empty() && !choices[0].policy->takes_solution())
    throw error("--solution: policy '{}' has no program of its deployment; give --policy lobra or lobra-sequential",
                choices[0].policy->name());
  const SessionInput input = read_input(flags);
  planner::check_placement(input.workload, input.cluster, overrides, choices[0]);
  const PlannedWork planned{input.workload, input.cluster, input.data, choices};
  const SteadyClock::time_point began = SteadyClock::now();
  planner::Plan made = plan(input, flags, costmodel::CostModel(profile_for(flags, planned)), choices[0]);
  if (const std::optional<costmodel::Profile> moved = profile_after_pilot(flags, planned, made, seconds_since(began)))
    return plan(input, flags, costmodel::CostModel(*moved), choices[0]);
  return made;
}

std::vector<PlanOrError> make_plans_from_flags(const CommonFlags& flags) {
  const planner::Overrides overrides = flags.overrides();
  const std::vector<planner::PolicyChoice> choices = planner::parse_policies(flags.policy);
  std::vector<PlanOrError> plans;
  for (const planner::PolicyChoice& choice : choices) plans.push_back({choice, {}, ""});
  const SessionInput input = read_input(flags);
  planner::check_overrides(input.workload, input.cluster, overrides);
  const auto each = [&](const auto& make) {
    bool any = false;
    for (PlanOrError& made : plans) {
      if (!made.error.empty()) continue;
      try {
        make(made);
        any = true;
      } catch (const Error& refused) {
        made.error = refused.what();
      }
    }
    return any;
  };
  const bool any = each([&](const PlanOrError& made) {
    planner::check_placement(input.workload, input.cluster, overrides, made.choice);
  });
  if (!any) return plans;
  const costmodel::CostModel cost(profile_for(flags, {input.workload, input.cluster, input.data, choices}));
  each([&](PlanOrError& made) { made.plan = plan(input, flags, cost, made.choice); });
  return plans;
}

planner::Plan plan_from_flags(const CommonFlags& flags) {
  if (flags.plan.empty()) return make_plan_from_flags(flags);
  planner::Plan plan = planner::read_plan(flags.plan);
  planner::check_data_hashes(plan);
  return plan;
}

planner::Judge judge_by_replay() {
  return [](const planner::Program& program, const planner::Durations& durations) {
    return sim::replay(program, durations);
  };
}

std::vector<std::string> task_names(const workload::Workload& workload) {
  std::vector<std::string> names;
  for (const workload::Task& task : workload.tasks) names.push_back(task.name);
  return names;
}

}  // namespace braid::cli

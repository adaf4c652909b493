#include <cmath>
#include <map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/cluster/simulate_cluster.h"
#include "sim/cluster/watched.h"
#include "support.h"

namespace braid::sim {
namespace {

using Counts = std::vector<std::int32_t>;

/// Of n tasks on g GPUs: alone one GPU takes a second, and each doubling of GPUs makes a step 1.6 times as fast.
double step_of(std::int32_t tasks, std::int32_t gpus) {
  return tasks / std::pow(1.6, std::log2(gpus));
}

TaskSets scaling_sets(std::int32_t most_tasks, std::vector<std::int32_t> sizes) {
  return {{10},
          {.most_tasks = most_tasks},
          [](const Counts& counts, std::int32_t gpus) {
            return SetRate{step_of(counts[0], gpus), gpus};
          },
          std::move(sizes)};
}

std::vector<ClusterJob> jobs_at(const std::vector<double>& submissions, double steps, std::int32_t gpus = 1) {
  std::vector<ClusterJob> jobs;
  for (const double at : submissions) {
    ClusterJob& job = jobs.emplace_back();
    job.submit_seconds = at;
    job.service_seconds = steps * step_of(1, gpus);
    job.gpus = gpus;
  }
  return jobs;
}

ClusterRun run_scaled(const std::vector<ClusterJob>& jobs, GpuPool pool, const std::string& name, TaskSets sets,
                      const InstanceRules& rules) {
  const auto scheduler = make_scheduler(name, jobs);
  return simulate_cluster(jobs, std::move(pool), *scheduler, sets, rules);
}

std::vector<ClusterJob> scalable_jobs(std::int32_t gpus) {
  std::vector<double> submissions;
  double now = 0;
  for (int count = *rc::gen::inRange(1, 40); count > 0; --count)
    submissions.push_back(now += *rc::gen::inRange(0, 300));
  std::vector<ClusterJob> jobs = jobs_at(submissions, 0, gpus);
  for (ClusterJob& job : jobs) job.service_seconds = *rc::gen::inRange(0, 2000);
  return jobs;
}

TEST(Scaling, AnInstanceGrowsWithItsTasks) {
  InstanceRules rules;
  rules.scales = true;
  const auto jobs = jobs_at({0, 0, 0}, 100);
  const ClusterRun made = run_scaled(jobs, {1, 4, false, Placement::packed}, "fcfs", scaling_sets(8, {1, 2, 4}), rules);
  EXPECT_EQ(made.instances, 1);
  EXPECT_EQ(made.resizes, 2);  // to 2 GPUs, and to 4
  for (const JobOutcome& outcome : made.outcomes) {
    EXPECT_EQ(outcome.gpus, 4);
    EXPECT_NEAR(outcome.finish_seconds, 100 * step_of(3, 4), 1e-9);
  }
}

TEST(Scaling, GrowingLoadsTheBackboneAnew) {
  InstanceRules rules{.backbones = {{0, 7}}, .scales = true};
  rules.replan_seconds = 1;
  const auto jobs = jobs_at({0, 17}, 100);
  const ClusterRun made = run_scaled(jobs, {1, 4, false, Placement::packed}, "fcfs", scaling_sets(8, {1, 2, 4}), rules);
  // 10 steps until 17; from 25 on both together: 90 steps, then 10 of the second alone.
  const double both = 25 + 90 * step_of(2, 2);
  EXPECT_NEAR(made.outcomes[0].finish_seconds, both, 1e-9);
  EXPECT_NEAR(made.outcomes[1].finish_seconds, both + 1 + 10 * step_of(1, 2), 1e-9);
}

TEST(Scaling, UpThenOutStartsAnotherWhereTheFirstIsAsLargeAsMayBe) {
  InstanceRules rules;
  rules.scales = true;
  const auto jobs = jobs_at({0, 0, 0, 0, 0, 0}, 100);
  const ClusterRun made = run_scaled(jobs, {2, 4, false, Placement::packed}, "fcfs", scaling_sets(8, {1, 2, 4}), rules);
  EXPECT_EQ(made.instances, 2);
  EXPECT_EQ(made.outcomes[3].instance, 0);
  EXPECT_EQ(made.outcomes[4].instance, 1);
  EXPECT_EQ(made.outcomes[4].gpus, 2);
  EXPECT_EQ(made.sums.saturated.to_seconds, 0);
}

TEST(Scaling, WhereNoGpuIsLeftTasksJoinAsTheyAre) {
  InstanceRules rules;
  rules.scales = true;
  const auto jobs = jobs_at({0, 0, 0, 0, 0}, 100);
  const ClusterRun made = run_scaled(jobs, {1, 2, false, Placement::packed}, "fcfs", scaling_sets(8, {1, 2}), rules);
  EXPECT_EQ(made.instances, 1);
  for (const JobOutcome& outcome : made.outcomes) EXPECT_EQ(outcome.start_seconds, 0);
  EXPECT_EQ(made.outcomes[4].gpus, 2);
}

/// Whatever grows, joins and fails: work is done, GPUs are given once (both checked in every run), nobody is left.
RC_GTEST_PROP(Scaling, EverybodyIsServed, ()) {
  const std::vector<ClusterJob> jobs = scalable_jobs(1);
  InstanceRules rules{.backbones = {{0, *rc::gen::inRange(0, 20) * 1.0}}, .scales = true};
  rules.replan_seconds = *rc::gen::inRange(0, 3);
  const std::int64_t nodes = *rc::gen::inRange(1, 4);
  const FailureRates rates{.gpu_mtbf_seconds = 20000, .node_mtbf_seconds = 40000, .repair_seconds = 500};
  if (*rc::gen::arbitrary<bool>()) rules.outages = Outages(rates, nodes, 4, 0, *rc::gen::inRange(0, 1000));
  using Sizes = std::vector<std::int32_t>;
  const Sizes sizes = *rc::gen::element(Sizes{1, 2, 4}, Sizes{1, 2, 3, 4}, Sizes{2, 4, 8, 12}, Sizes{1, 4});
  std::vector<ClusterJob> asked = jobs;
  for (ClusterJob& job : asked) job.gpus = sizes.front();
  std::vector<std::int32_t> fitting;
  for (const std::int32_t size : sizes) {
    if (size <= 4 * nodes) fitting.push_back(size);
  }
  for (const char* name : {"fcfs", "srtf", "las", "mux", "drf"}) {
    const ClusterRun made = run_scaled(asked, {nodes, 4, false, Placement::packed}, name,
                                       scaling_sets(*rc::gen::inRange(2, 14), fitting), rules);
    for (const JobOutcome& outcome : made.outcomes) RC_ASSERT(outcome.finished());
  }
}

RC_GTEST_PROP(Goodput, EverybodyIsServedAndNobodyMovesTwiceAtOnce, ()) {
  const std::vector<ClusterJob> jobs = scalable_jobs(4);
  InstanceRules rules{.backbones = {{0, *rc::gen::inRange(0, 20) * 1.0}}};
  const std::int64_t nodes = *rc::gen::inRange(1, 4);
  const FailureRates rates{.gpu_mtbf_seconds = 20000, .node_mtbf_seconds = 40000, .repair_seconds = 500};
  if (*rc::gen::arbitrary<bool>()) rules.outages = Outages(rates, nodes, 4, 0, *rc::gen::inRange(0, 1000));
  std::vector<std::int32_t> sizes = {1, 2, 4};
  if (nodes > 1) sizes.push_back(8);
  const auto scheduler = make_scheduler("goodput", jobs);
  testing::Watched watched(*scheduler);
  TaskSets sets = scaling_sets(1, sizes);
  const ClusterRun made = simulate_cluster(jobs, {nodes, 4, false, Placement::packed}, watched, sets, rules);
  for (const JobOutcome& outcome : made.outcomes) RC_ASSERT(outcome.finished());
  RC_ASSERT(!watched.restarts());
  RC_ASSERT(watched.decisions() < 1000 + 100 * static_cast<int>(jobs.size()));
}

TEST(Goodput, GivesWhatIsFreeToThoseThatGainTheMost) {
  // Alone on the cluster: all of it from the first round on; with four others one GPU each.
  const auto alone = jobs_at({0}, 3600, 4);
  const auto sets = [] { return scaling_sets(1, {1, 2, 4, 8}); };
  const ClusterRun one = run_scaled(alone, {2, 4, false, Placement::packed}, "goodput", sets(), {});
  EXPECT_EQ(one.outcomes[0].gpus, 8);
  EXPECT_NEAR(one.end_seconds, 3600 * step_of(1, 8), 1e-6);
  const auto many = jobs_at({0, 0, 0, 0}, 3600, 4);
  const ClusterRun four = run_scaled(many, {1, 4, false, Placement::packed}, "goodput", scaling_sets(1, {1, 2, 4}), {});
  for (const JobOutcome& outcome : four.outcomes) EXPECT_NEAR(outcome.finish_seconds, 3600, 1e-6);
  // One less: whoever is left has the rest when the next round begins.
  auto late = many;
  late[3].service_seconds = 100 * step_of(1, 4);
  const ClusterRun freed =
      run_scaled(late, {1, 4, false, Placement::packed}, "goodput", scaling_sets(1, {1, 2, 4}), {});
  EXPECT_NEAR(freed.outcomes[3].finish_seconds, 100, 1e-6);
  EXPECT_NEAR(freed.outcomes[0].finish_seconds, 360 + (3600 - 360) * step_of(1, 2), 1e-6);
  EXPECT_EQ(freed.outcomes[0].preemptions, 0);
}

/// Tasks of unlike backbones never meet, and an instance that is taken over loads the other one.
TEST(Backbones, AreLoadedWhereTheyAreNotThere) {
  TaskSets sets({10, 10}, {.most_tasks = 4}, [](const Counts& counts, std::int32_t) {
    return counts[0] > 0 && counts[1] > 0 ? std::nullopt : std::optional(SetRate{1.0 * (counts[0] + counts[1]), 0});
  });
  std::vector<ClusterJob> jobs = jobs_at({0, 0, 5, 5}, 10, 1);
  jobs[1].kind = jobs[2].kind = 1;
  InstanceRules rules{.backbones = {{0, 3}, {1, 4}}};
  const auto scheduler = make_scheduler("fcfs", jobs);
  const ClusterRun made = simulate_cluster(jobs, {1, 1, false, Placement::packed}, *scheduler, sets, rules);
  // The first ends at 13; the others take its GPU: the second and third, which load until 17, end at 37; the fourth,
  // behind them, loads until 40.
  EXPECT_NEAR(made.outcomes[0].finish_seconds, 13, 1e-9);
  EXPECT_NEAR(made.outcomes[1].finish_seconds, 37, 1e-9);
  EXPECT_NEAR(made.outcomes[2].finish_seconds, 37, 1e-9);
  EXPECT_NEAR(made.outcomes[3].finish_seconds, 50, 1e-9);
  EXPECT_EQ(made.outcomes[3].shared, false);
}

}  // namespace
}  // namespace braid::sim

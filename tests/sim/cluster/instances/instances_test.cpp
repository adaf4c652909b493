#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/cluster/moments.h"
#include "sim/cluster/simulate_cluster.h"
#include "sim/cluster/watched.h"
#include "support.h"

namespace braid::sim {
namespace {

using Counts = std::vector<std::int32_t>;

constexpr std::int32_t kInstanceGpus = 2;

/// Of each kind alone. No two sets of a few tasks take the same.
constexpr double kAlone[] = {1, 2.0625};

/// GPU-seconds that a task's step computes for, in any company.
constexpr double kBusy = 0.5;

/// The longest of the tasks' steps, and half of each other's.
double step_of(const Counts& counts) {
  const double all = counts[0] * kAlone[0] + counts[1] * kAlone[1];
  const double slowest = kAlone[counts[1] > 0 ? 1 : 0];
  return slowest + (all - slowest) / 2;
}

TaskSets two_kinds(std::int32_t most_tasks, double most_slowdown = std::numeric_limits<double>::infinity()) {
  return {{10, 30}, {.most_tasks = most_tasks, .most_slowdown = most_slowdown}, [](const Counts& counts, std::int32_t) {
            return SetRate{step_of(counts), 0, kBusy * (counts[0] + counts[1])};
          }};
}

ClusterJob task(double submit, double service, KindIndex kind = 0, std::int32_t priority = 0) {
  ClusterJob job;
  job.submit_seconds = submit;
  job.service_seconds = service;
  job.gpus = kInstanceGpus;
  job.kind = kind;
  job.priority = priority;
  return job;
}

ClusterRun run_shared(const std::vector<ClusterJob>& jobs, std::int64_t instances, const std::string& scheduler,
                      TaskSets sets, const InstanceRules& rules = {}) {
  const auto chosen = make_scheduler(scheduler, jobs);
  return simulate_cluster(jobs, {instances, kInstanceGpus, false, Placement::packed}, *chosen, sets, rules);
}

std::vector<double> finishes(const ClusterRun& run) {
  std::vector<double> times;
  for (const JobOutcome& outcome : run.outcomes) times.push_back(outcome.finish_seconds);
  return times;
}

/// Told the long way: what every task has left is worked off from one event to the next, none is remembered.
std::vector<double> worked_off(const std::vector<ClusterJob>& jobs, std::size_t instances, std::size_t most_tasks) {
  std::vector<double> left, finish(jobs.size(), kNever);
  for (const ClusterJob& job : jobs) left.push_back(job.service_seconds / kAlone[job.kind]);
  std::vector<std::vector<std::size_t>> hosted(instances);
  std::vector<int> changed(instances, 0);  // when, in changes
  int changes = 0;
  const auto step = [&](const std::vector<std::size_t>& tasks) {
    Counts counts(2, 0);
    for (const std::size_t j : tasks) ++counts[static_cast<std::size_t>(jobs[j].kind)];
    return step_of(counts);
  };
  std::size_t next = 0, queued = 0;  // first not submitted, first not started
  for (double now = 0; std::count(finish.begin(), finish.end(), kNever) > 0;) {
    double moment = next < jobs.size() ? jobs[next].submit_seconds : kNever;
    for (const auto& tasks : hosted) {
      for (const std::size_t j : tasks) moment = std::min(moment, now + left[j] * step(tasks));
    }
    for (auto& tasks : hosted) {
      if (tasks.empty()) continue;
      const double steps = (moment - now) / step(tasks);
      for (const std::size_t j : tasks) left[j] -= steps;
      for (const std::size_t j : tasks) {
        if (left[j] < 1e-9) finish[j] = moment;
      }
      const bool is_changed = std::erase_if(tasks, [&](std::size_t j) { return left[j] < 1e-9; }) > 0;
      if (is_changed) changed[static_cast<std::size_t>(&tasks - hosted.data())] = ++changes;
    }
    now = moment;
    while (next < jobs.size() && jobs[next].submit_seconds <= now) ++next;
    for (; queued < next; ++queued) {
      // Of like ones that which changed last.
      std::size_t fastest = instances;
      std::pair least(kNever, 0);
      for (std::size_t i = 0; i < instances; ++i) {
        if (hosted[i].size() == most_tasks) continue;
        std::vector<std::size_t> with = hosted[i];
        with.push_back(queued);
        const std::pair rank(step(with), -changed[i]);
        if (rank < least) least = rank, fastest = i;
      }
      if (fastest == instances) break;
      hosted[fastest].push_back(queued);
      changed[fastest] = ++changes;
    }
  }
  return finish;
}

RC_GTEST_PROP(Instances, AClockOfStepsIsTheSameAsWorkingOffEachTask, ()) {
  std::vector<ClusterJob> jobs;
  double now = 0;
  // Roots keep moments apart that rounding would put in some order.
  for (int count = *rc::gen::inRange(1, 40); count > 0; --count) {
    now += *rc::gen::inRange(0, 500) / 101.7;
    const double service = (*rc::gen::inRange(1, 3000) + std::sqrt(2.0 + count) / 10) / 77;
    jobs.push_back(task(now, service, *rc::gen::inRange(0, 2)));
  }
  jobs.front().submit_seconds = 0;
  const auto instances = *rc::gen::inRange<std::size_t>(1, 4), most = *rc::gen::inRange<std::size_t>(1, 5);
  const ClusterRun made =
      run_shared(jobs, static_cast<std::int64_t>(instances), "fcfs", two_kinds(static_cast<std::int32_t>(most)));
  const std::vector<double> expected = worked_off(jobs, instances, most);
  double tokens = 0, busy = 0;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    RC_ASSERT(std::abs(made.outcomes[j].finish_seconds - expected[j]) < 1e-6);
    busy += jobs[j].service_seconds / kAlone[jobs[j].kind] * kBusy;
    tokens += jobs[j].service_seconds / kAlone[jobs[j].kind] * (jobs[j].kind == 0 ? 10 : 30);
  }
  RC_ASSERT(std::abs(made.tokens - tokens) < 1e-6 * tokens);
  RC_ASSERT(std::abs(made.busy_gpu_seconds - busy) < 1e-6 * busy);
  double binned = 0;
  for (const Usage::Bin& bin : made.usage.bins) binned += bin.tokens;
  RC_ASSERT(std::abs(binned - tokens) < 1e-6 * tokens);
}

TEST(Instances, TasksThatShareSlowEachOtherDown) {
  // Two alone on two instances; the third joins the one that started last: steps of 1.5 s, while they are two.
  const ClusterRun made = run_shared({task(0, 10), task(0, 30), task(4, 4)}, 2, "fcfs", two_kinds(2));
  EXPECT_EQ(finishes(made), (std::vector<double>{10, 32, 10}));
  EXPECT_TRUE(made.outcomes[1].shared && made.outcomes[2].shared);
  EXPECT_FALSE(made.outcomes[0].shared);
  EXPECT_EQ(made.instances, 2);
  EXPECT_EQ(made.sums.allocated_gpu_seconds, 2 * (10 + 32));
  EXPECT_EQ(made.tokens, 440);
}

TEST(Instances, LoadingAndPlanningTakeTheirTime) {
  const InstanceRules rules{.backbones = {{0, 3}, {0, 3}}, .replan_seconds = 1};
  // Loads until 3; at 7 four steps are done, and the plan of two is there at 8: the second ends after 2 steps of 1.5 s
  // at 11, the first goes on at 12.
  const ClusterRun made = run_shared({task(0, 10), task(7, 2)}, 1, "fcfs", two_kinds(2), rules);
  EXPECT_EQ(finishes(made), (std::vector<double>{16, 11}));
  EXPECT_EQ(made.replans, 2);
  EXPECT_NEAR(made.busy_gpu_seconds, 12 * kBusy, 1e-9);
}

TEST(Instances, NothingIsBilledWhileABackboneIsLoaded) {
  InstanceRules rules{.backbones = {{0, 8}, {0, 8}}};
  rules.usage_bin_seconds = 8;
  const ClusterRun made = run_shared({task(0, 16)}, 1, "fcfs", two_kinds(1), rules);
  ASSERT_EQ(made.usage.bins.size(), 3U);
  EXPECT_EQ(made.usage.bins[0].tokens, 0);
  EXPECT_EQ(made.usage.bins[1].tokens, 80);
  EXPECT_EQ(made.sums.saturated.tokens, 160);
}

TEST(Instances, ABackboneStaysWhereSomebodyTakesThePlaceAtOnce) {
  const InstanceRules rules{.backbones = {{0, 3}, {0, 3}}, .replan_seconds = 0};
  EXPECT_EQ(finishes(run_shared({task(0, 10), task(0, 10), task(0, 10)}, 1, "fcfs", two_kinds(2), rules)),
            (std::vector<double>{18, 18, 28}));
  // Whose system shares nothing loads it anew.
  EXPECT_EQ(finishes(run_shared({task(0, 10), task(0, 10)}, 1, "fcfs", two_kinds(1), rules)),
            (std::vector<double>{13, 26}));
}

TEST(Instances, LimitsKeepTasksOut) {
  EXPECT_EQ(finishes(run_shared({task(0, 10), task(0, 10), task(0, 10)}, 1, "fcfs", two_kinds(3, 1.5))),
            (std::vector<double>{15, 15, 25}));
  TaskSets never{{1, 1}, {.most_tasks = 2}, [](const Counts& counts, std::int32_t) {
                   return counts[1] > 0 ? std::nullopt : std::optional(SetRate{1, 0});
                 }};
  const ClusterRun made = run_shared({task(0, 10, 1), task(0, 10)}, 1, "fcfs", never);
  EXPECT_TRUE(made.outcomes[0].rejected);
  EXPECT_EQ(made.outcomes[1].finish_seconds, 10);
}

TEST(Instances, AuditsEstimatesAndNotWhatStandsInForThem) {
  // Two tasks of kind 1 have no estimate; beside one of kind 0 they do, and when that leaves its rate stays.
  TaskSets holed{{1, 1}, {.most_tasks = 3}, [](const Counts& counts, std::int32_t) {
                   return counts == Counts{0, 2} ? std::nullopt : std::optional(SetRate{step_of(counts), 0});
                 }};
  const std::vector<ClusterJob> jobs = {task(0, 10), task(1, 100, 1), task(2, 100, 1)};
  const auto chosen = make_scheduler("fcfs", jobs);
  const InstanceRules rules{.audited_share = 1};
  const ClusterRun made = simulate_cluster(jobs, {1, kInstanceGpus, false, Placement::packed}, *chosen, holed, rules);
  std::vector<Counts> audited;
  for (const SetIndex set : made.audited) audited.push_back(holed.counts(set));
  EXPECT_EQ(audited, (std::vector<Counts>{{1, 0}, {1, 1}, {1, 2}, {0, 1}}));
  EXPECT_TRUE(made.outcomes[2].finished());
}

TEST(Instances, MuxJoinsWhereThroughputRisesTheMost) {
  // Kind 1 beside kind 0 bills 40 tokens in 2.6 s, 6 more a second than kind 0 alone; a new instance 15.
  const ClusterRun made = run_shared({task(0, 100), task(1, 100, 1), task(2, 100, 1)}, 2, "mux", two_kinds(2));
  EXPECT_EQ(made.instances, 2);
  EXPECT_FALSE(made.outcomes[0].instance == made.outcomes[1].instance);
  // Then kind 1 again: beside kind 0 from 10 a second to 16, beside kind 1 from 15 to 19.
  EXPECT_EQ(made.outcomes[2].instance, made.outcomes[0].instance);
}

TEST(Instances, MuxGivesHighPrioritiesAnInstanceOfTheirOwn) {
  const ClusterRun made =
      run_shared({task(0, 50, 0, 1), task(1, 50), task(2, 50), task(3, 5, 0, 2)}, 2, "mux", two_kinds(4));
  EXPECT_EQ(made.outcomes[0].finish_seconds, 50);
  EXPECT_FALSE(made.outcomes[0].shared);
  EXPECT_TRUE(made.outcomes[1].shared && made.outcomes[2].shared);
  EXPECT_FALSE(made.outcomes[3].shared);
}

TEST(Instances, AHorizonEndsEverything) {
  const ClusterRun made =
      run_shared({task(0, 10), task(0, 50), task(90, 1)}, 1, "fcfs", two_kinds(2), {.horizon_seconds = 30});
  EXPECT_EQ(finishes(made), (std::vector<double>{15, kNever, kNever}));
  EXPECT_EQ(made.outcomes[1].steps, 25);
  EXPECT_EQ(made.outcomes[1].run_seconds, 30);
  EXPECT_EQ(made.outcomes[2].start_seconds, kNever);
  EXPECT_EQ(made.tokens, 350);
  EXPECT_EQ(made.end_seconds, 30);
}

TEST(Instances, SaturatedIsFromTheFirstToTheLastMomentWithoutAFreeGpu) {
  const ClusterRun made = run_shared({task(0, 10), task(2, 10), task(20, 10), task(21, 9)}, 2, "fcfs", two_kinds(1));
  EXPECT_EQ(made.sums.saturated.from_seconds, 2);
  EXPECT_EQ(made.sums.saturated.to_seconds, 30);
  EXPECT_EQ(made.sums.saturated.tokens, 80 + 100 + 100 + 90);
  EXPECT_EQ(made.usage.bins.size(), 1U);
  EXPECT_EQ(made.usage.bins[0].tokens, 390);
}

RC_GTEST_PROP(Instances, EverySchedulerServesTasksThatShare, ()) {
  std::vector<ClusterJob> jobs;
  double now = 0;
  for (int count = *rc::gen::inRange(1, 40); count > 0; --count) {
    now += *rc::gen::inRange(0, 6);
    jobs.push_back(task(now, *rc::gen::inRange(0, 30), *rc::gen::inRange(0, 2), *rc::gen::inRange(0, 3)));
  }
  const double load = *rc::gen::inRange(0, 3);
  const InstanceRules rules{.backbones = {{0, load}, {0, load}}, .replan_seconds = *rc::gen::inRange(0, 3) * 0.5};
  for (const SchedulerKind& kind : scheduler_kinds()) {
    if (kind.is_elastic) continue;
    // Nodes of a GPU more than an instance has one left over each, which is too few; and tasks that share.
    for (const auto& [gpus_per_node, most_tasks] : {std::pair(kInstanceGpus, 3), std::pair(kInstanceGpus + 1, 1)}) {
      const auto scheduler = kind.make(jobs);
      testing::Watched watched(*scheduler);
      TaskSets sets = two_kinds(most_tasks);
      const ClusterRun made =
          simulate_cluster(jobs, {2, gpus_per_node, false, Placement::packed}, watched, sets, rules);
      for (const JobOutcome& outcome : made.outcomes) RC_ASSERT(outcome.finished());
      RC_ASSERT(!watched.restarts());
      RC_ASSERT(watched.decisions() < 1000 + 100 * static_cast<int>(jobs.size()));
    }
  }
}

/// Whoever ranks first has a place, wherever tasks that share must stop for it.
RC_GTEST_PROP(Instances, NobodyWaitsBehindOneThatRanksLower, ()) {
  std::vector<ClusterJob> jobs;
  double now = 0;
  for (int count = *rc::gen::inRange(1, 40); count > 0; --count) {
    now += *rc::gen::inRange(0, 6);
    jobs.push_back(task(now, *rc::gen::inRange(1, 30), 0, *rc::gen::inRange(0, 3)));
    jobs.back().deadline_seconds = now + *rc::gen::inRange(1, 60);
  }
  using Key = std::function<double(const Cluster&, JobIndex)>;
  const auto of = [&](JobIndex job) -> const ClusterJob& { return jobs[static_cast<std::size_t>(job)]; };
  const std::map<std::string, Key> keys = {
      {"srtf", [](const Cluster& cluster, JobIndex job) { return cluster.remaining_seconds(job); }},
      {"priority", [&](const Cluster&, JobIndex job) { return -of(job).priority; }},
      {"edf", [&](const Cluster&, JobIndex job) { return of(job).deadline_seconds; }}};
  for (const auto& [name, key] : keys) {
    const auto scheduler = make_scheduler(name, jobs);
    testing::Watched watched(*scheduler);
    watched.after = [&](const Cluster& cluster) {
      const std::set<JobIndex> running(cluster.running().begin(), cluster.running().end());
      double last_running = -kNever, first_waiting = kNever;
      for (JobIndex job = 0; job < static_cast<JobIndex>(jobs.size()); ++job) {
        if (of(job).submit_seconds > cluster.now() || cluster.remaining_seconds(job) < 1e-9) continue;
        double& bound = running.contains(job) ? last_running : first_waiting;
        const double rank = key(cluster, job);
        bound = running.contains(job) ? std::max(bound, rank) : std::min(bound, rank);
      }
      RC_ASSERT(last_running <= first_waiting + 1e-9);
      if (first_waiting < kNever) RC_ASSERT(running.size() == 6U);
    };
    TaskSets sets = two_kinds(3);
    simulate_cluster(jobs, {2, kInstanceGpus, false, Placement::packed}, watched, sets);
  }
}

}  // namespace
}  // namespace braid::sim

#include "sim/cluster/simulate_cluster.h"

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "sim/cluster/moments.h"
#include "sim/cluster/recorded.h"
#include "sim/cluster/study/trace_jobs.h"
#include "sim/cluster/watched.h"
#include "support.h"

namespace braid::sim {
namespace {

using namespace testing;

/// Second by second: who waits, in an order, starts while it fits; those of `strict` wait behind whoever does not fit.
std::vector<double> ticked(const std::vector<ClusterJob>& jobs, std::int64_t gpus, bool strict,
                           const std::function<double(const ClusterJob&)>& key) {
  std::vector<double> start(jobs.size(), -1), end(jobs.size(), -1);
  for (double now = 0; std::count(start.begin(), start.end(), -1) > 0; now += 1) {
    bool changed = true;
    // Jobs of no length end at once and may let others in.
    while (changed) {
      changed = false;
      std::int64_t free = gpus;
      for (std::size_t j = 0; j < jobs.size(); ++j) free -= start[j] >= 0 && end[j] > now ? jobs[j].gpus : 0;
      std::vector<std::size_t> order;
      for (std::size_t j = 0; j < jobs.size(); ++j) {
        if (start[j] < 0 && jobs[j].submit_seconds <= now) order.push_back(j);
      }
      std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return key(jobs[a]) < key(jobs[b]); });
      for (const std::size_t j : order) {
        if (jobs[j].gpus > free) {
          if (strict) break;
          continue;
        }
        free -= jobs[j].gpus;
        start[j] = now;
        end[j] = now + jobs[j].service_seconds;
        changed = changed || jobs[j].service_seconds == 0;
      }
    }
  }
  return start;
}

RC_GTEST_PROP(SimulateCluster, FcfsAndShortestFirstAreThoseOfAClockThatTicks, ()) {
  const std::int64_t gpus = *rc::gen::inRange(1, 9);
  const std::vector<ClusterJob> jobs = any_jobs(static_cast<int>(gpus));
  const auto by_submission = [](const ClusterJob& each) { return each.submit_seconds; };
  RC_ASSERT(starts(run(jobs, gpus, "fcfs")) == ticked(jobs, gpus, true, by_submission));
  RC_ASSERT(starts(run(jobs, gpus, "fcfs-any")) == ticked(jobs, gpus, false, by_submission));
  RC_ASSERT(starts(run(jobs, gpus, "sjf")) ==
            ticked(jobs, gpus, false, [](const ClusterJob& each) { return each.service_seconds; }));
}

RC_GTEST_PROP(SimulateCluster, EverySchedulerServesEveryJobWholly, ()) {
  const std::int64_t gpus = *rc::gen::inRange(1, 9);
  const std::vector<ClusterJob> jobs = any_jobs(static_cast<int>(gpus) + 1);
  for (const SchedulerKind& kind : scheduler_kinds()) {
    if (kind.is_elastic) continue;
    const auto scheduler = kind.make(jobs);
    Watched watched(*scheduler);
    TaskSets sets = exclusive_sets();
    const ClusterRun made = simulate_cluster(jobs, flat_pool(gpus), watched, sets);
    double work = 0;
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      const JobOutcome& outcome = made.outcomes[j];
      RC_ASSERT(outcome.rejected == (jobs[j].gpus > gpus || (kind.name == "budget" && cost(jobs[j]) > jobs[j].budget)));
      RC_ASSERT(outcome.finished() == !outcome.rejected);
      if (outcome.rejected) continue;
      work += jobs[j].gpus * jobs[j].service_seconds;
      RC_ASSERT(std::abs(outcome.run_seconds - jobs[j].service_seconds) < 1e-9 * (1 + jobs[j].service_seconds));
      if (outcome.preemptions == 0)
        RC_ASSERT(outcome.finish_seconds == outcome.start_seconds + jobs[j].service_seconds);
    }
    RC_ASSERT(std::abs(made.sums.allocated_gpu_seconds - work) < 1e-9 * (1 + work));
    RC_ASSERT(!watched.restarts());
    // Whoever starts, ends or is submitted makes for one decision; those that a scheduler asks for besides are few.
    RC_ASSERT(watched.decisions() < 100 * static_cast<int>(jobs.size()));
  }
}

TEST(SimulateCluster, RoundsEndWhenNobodyWaits) {
  for (const SchedulerKind& kind : scheduler_kinds()) {
    if (kind.is_elastic) continue;
    const std::vector<ClusterJob> jobs = {job(0, 1e8), job(10, 1e4), job(20, 1e4)};
    const auto scheduler = kind.make(jobs);
    Watched watched(*scheduler);
    TaskSets sets = exclusive_sets();
    const ClusterRun made = simulate_cluster(jobs, flat_pool(2), watched, sets);
    EXPECT_LE(made.end_seconds, 1e8 + 2e4) << kind.name;
    EXPECT_LT(watched.decisions(), 100) << kind.name;
  }
}

RC_GTEST_PROP(SimulateCluster, BudgetRefusesWhatIsTooDearAndTakesTheTightestFirst, ()) {
  const std::int64_t gpus = *rc::gen::inRange(1, 9);
  const std::vector<ClusterJob> jobs = any_jobs(static_cast<int>(gpus));
  std::vector<ClusterJob> affordable;
  for (const ClusterJob& each : jobs) {
    if (cost(each) <= each.budget) affordable.push_back(each);
  }
  std::vector<double> started;
  for (const JobOutcome& outcome : run(jobs, gpus, "budget").outcomes) {
    if (!outcome.rejected) started.push_back(outcome.start_seconds);
  }
  RC_ASSERT(started ==
            ticked(affordable, gpus, false, [](const ClusterJob& each) { return each.budget - cost(each); }));
}

TEST(SimulateCluster, JobsHaveTheBudgetsOfTheirTrace) {
  traces::Trace trace;
  trace.jobs.resize(2);
  trace.jobs[0].budget = 3;
  EXPECT_EQ(recorded_jobs(trace)[0].budget, 3);
  EXPECT_EQ(recorded_jobs(trace)[1].budget, kNever);
}

/// EASY as it is told: at each event the reservation of the first in the queue, then the queue in order.
std::vector<double> easy_by_the_book(const std::vector<ClusterJob>& jobs, std::int64_t gpus) {
  std::vector<double> start(jobs.size(), -1), end(jobs.size(), -1);
  for (double now = 0; std::count(start.begin(), start.end(), -1) > 0; now += 1) {
    bool again = true;
    while (again) {
      again = false;
      std::int64_t free = gpus;
      std::vector<std::pair<double, std::int32_t>> running;
      for (std::size_t j = 0; j < jobs.size(); ++j) {
        if (start[j] < 0 || end[j] <= now) continue;
        free -= jobs[j].gpus;
        running.emplace_back(end[j], jobs[j].gpus);
      }
      const auto begin = [&](std::size_t j) {
        start[j] = now;
        end[j] = now + jobs[j].service_seconds;
        free -= jobs[j].gpus;
        running.emplace_back(end[j], jobs[j].gpus);
        again = again || jobs[j].service_seconds == 0;
      };
      std::vector<std::size_t> queue;
      for (std::size_t j = 0; j < jobs.size(); ++j) {
        if (start[j] < 0 && jobs[j].submit_seconds <= now) queue.push_back(j);
      }
      while (!queue.empty() && jobs[queue.front()].gpus <= free) {
        begin(queue.front());
        queue.erase(queue.begin());
      }
      if (queue.empty()) continue;
      std::sort(running.begin(), running.end());
      std::int64_t then = free;
      double shadow = now;
      for (std::size_t r = 0; r < running.size() && (then < jobs[queue.front()].gpus || running[r].first == shadow);
           ++r) {
        then += running[r].second;
        shadow = running[r].first;
      }
      std::int64_t spare = then - jobs[queue.front()].gpus;
      for (std::size_t q = 1; q < queue.size(); ++q) {
        const ClusterJob& each = jobs[queue[q]];
        const bool in_time = now + each.service_seconds <= shadow;
        if (each.gpus > free || (!in_time && each.gpus > spare)) continue;
        if (!in_time) spare -= each.gpus;
        begin(queue[q]);
      }
    }
  }
  return start;
}

RC_GTEST_PROP(SimulateCluster, EasyIsAsTheBookSays, ()) {
  const std::int64_t gpus = *rc::gen::inRange(1, 9);
  const std::vector<ClusterJob> jobs = any_jobs(static_cast<int>(gpus));
  RC_ASSERT(starts(run(jobs, gpus, "easy")) == easy_by_the_book(jobs, gpus));
}

TEST(SimulateCluster, EasyLetsShortJobsPassAndKeepsTheReservation) {
  // Two GPUs busy until 10; the next needs three. One that ends by 10 may pass, one that does not may not, one on the
  // spare GPU may.
  const std::vector<ClusterJob> jobs = {job(0, 10, 2), job(1, 5, 3), job(2, 8, 2), job(3, 9, 2), job(4, 50, 1)};
  EXPECT_EQ(starts(run(jobs, 4, "fcfs")), (std::vector<double>{0, 10, 15, 15, 23}));
  EXPECT_EQ(starts(run(jobs, 4, "easy")), (std::vector<double>{0, 10, 2, 15, 10}));
}

/// Conservative backfilling as it is told: each job, when it is submitted, reserves its GPUs from the first second on
/// that leaves all reservations before it as they are.
std::vector<double> reserved_by_the_book(const std::vector<ClusterJob>& jobs, std::int64_t gpus) {
  std::vector<double> start;
  std::vector<std::int64_t> free(2000, gpus);
  for (const ClusterJob& each : jobs) {
    const auto length = static_cast<std::size_t>(each.service_seconds);
    auto from = static_cast<std::size_t>(each.submit_seconds);
    const auto is_free = [&] {
      for (std::size_t second = from; second < from + length; ++second) {
        if (free.at(second) < each.gpus) return false;
      }
      return true;
    };
    while (!is_free()) ++from;
    for (std::size_t second = from; second < from + length; ++second) free[second] -= each.gpus;
    start.push_back(static_cast<double>(from));
  }
  return start;
}

RC_GTEST_PROP(SimulateCluster, ConservativeStartsJobsWhenTheyWereFirstReserved, ()) {
  const std::int64_t gpus = *rc::gen::inRange(1, 9);
  std::vector<ClusterJob> jobs = any_jobs(static_cast<int>(gpus));
  // Those of no length take nobody's place, and have no reservation that holds.
  for (ClusterJob& each : jobs) each.service_seconds = std::max(1.0, each.service_seconds);
  RC_ASSERT(starts(run(jobs, gpus, "conservative")) == reserved_by_the_book(jobs, gpus));
}

TEST(SimulateCluster, ConservativeKeepsEveryReservation) {
  // Until 10 three of four GPUs are busy. The second waits for all four, the third for two until 18: the fourth would
  // end before the second starts, the fifth only after it.
  const std::vector<ClusterJob> jobs = {job(0, 10, 3), job(1, 5, 4), job(2, 3, 2), job(3, 7, 1), job(4, 7, 1)};
  EXPECT_EQ(starts(run(jobs, 4, "conservative")), (std::vector<double>{0, 10, 15, 3, 15}));
}

TEST(SimulateCluster, ConservativeReservesAnewWhereJobsRunForLonger) {
  std::vector<ClusterJob> jobs = {job(0, 10, 2), job(1, 5, 3), job(2, 8, 1), job(3, 7, 1)};
  const auto scheduler = make_scheduler("conservative", jobs);
  TaskSets sets = exclusive_sets();
  const ClusterRun made = simulate_cluster(jobs, flat_pool(3), *scheduler, sets, {.backbones = {{0, 2}}});
  // The third is due to end at 10 and does at 12, when the first does.
  EXPECT_EQ(starts(made), (std::vector<double>{0, 12, 2, 19}));
  EXPECT_EQ(finishes(made), (std::vector<double>{12, 19, 12, 28}));
}

/// Shortest remaining first is optimal on one GPU with free preemption (Schrage 1968).
RC_GTEST_PROP(SimulateCluster, ShortestRemainingFirstHasTheLeastMeanCompletionOnOneGpu, ()) {
  const std::vector<ClusterJob> jobs = any_jobs(1);
  const double least = mean_completion(jobs, run(jobs, 1, "srtf"));
  for (const SchedulerKind& kind : scheduler_kinds()) {
    if (kind.is_elastic) continue;
    RC_ASSERT(least <= mean_completion(jobs, run(jobs, 1, std::string(kind.name))) + 1e-9);
  }
}

/// On one GPU, second by second: the least key runs.
RC_GTEST_PROP(SimulateCluster, PreemptiveSchedulersRunTheLeastKeyAtEveryMoment, ()) {
  const std::vector<ClusterJob> jobs = any_jobs(1, 25);
  const std::map<std::string, std::function<double(const ClusterJob&, double)>> keys = {
      {"srtf", [](const ClusterJob&, double left) { return left; }},
      {"priority", [](const ClusterJob& each, double) { return -each.priority; }},
      {"edf", [](const ClusterJob& each, double) { return each.deadline_seconds; }}};
  for (const auto& [name, key] : keys) {
    std::vector<double> left, end(jobs.size(), -1);
    for (const ClusterJob& each : jobs) left.push_back(each.service_seconds);
    for (double now = 0; std::count(end.begin(), end.end(), -1) > 0; now += 1) {
      int best = -1;
      while (true) {
        best = -1;
        for (std::size_t j = 0; j < jobs.size(); ++j) {
          if (end[j] >= 0 || jobs[j].submit_seconds > now) continue;
          const auto rank = [&](std::size_t i) { return std::pair(key(jobs[i], left[i]), i); };
          if (best < 0 || rank(j) < rank(static_cast<std::size_t>(best))) best = static_cast<int>(j);
        }
        if (best < 0 || left[static_cast<std::size_t>(best)] > 0) break;
        end[static_cast<std::size_t>(best)] = now;  // of no length
      }
      if (best < 0) continue;
      if (--left[static_cast<std::size_t>(best)] == 0) end[static_cast<std::size_t>(best)] = now + 1;
    }
    RC_ASSERT(finishes(run(jobs, 1, name)) == end);
  }
}

TEST(SimulateCluster, PreemptedJobsGoOnWhereTheyStopped) {
  const std::vector<ClusterJob> jobs = {job(0, 10, 2), job(3, 3, 1), job(4, 1, 2)};
  const ClusterRun made = run(jobs, 2, "srtf");
  EXPECT_EQ(finishes(made), (std::vector<double>{14, 7, 5}));
  EXPECT_EQ(made.outcomes[0].preemptions, 1);
  EXPECT_EQ(made.outcomes[1].preemptions, 1);
  EXPECT_EQ(made.outcomes[0].run_seconds, 10);
}

double mean_wait(const std::vector<ClusterJob>& jobs, std::int64_t gpus) {
  const ClusterRun made = run(jobs, gpus, "fcfs");
  double sum = 0;
  for (std::size_t j = 0; j < jobs.size(); ++j) sum += made.outcomes[j].start_seconds - jobs[j].submit_seconds;
  return sum / static_cast<double>(jobs.size());
}

TEST(SimulateCluster, FcfsWaitsAsErlangSays) {
  // M/M/c: Erlang's C formula over (c mu - lambda).
  for (const auto& [servers, load] : {std::pair{1, 0.7}, std::pair{4, 0.8}, std::pair{16, 0.9}}) {
    const double offered = load * servers;
    double term = 1, sum = 1;
    for (int k = 1; k < servers; ++k) sum += term *= offered / k;
    const double last = term * offered / servers / (1 - load);
    const double theory = last / (sum + last) / (servers - offered);
    expect_mean(
        [&](std::uint64_t seed) {
          return mean_wait(poisson_jobs(offered, seed, 40000,
                                        [](RandomStream& random) { return -std::log(1 - random.next_uniform()); }),
                           servers);
        },
        theory);
  }
}

TEST(SimulateCluster, FcfsWaitsAsPollaczekAndKhinchinSay) {
  // M/G/1: lambda E[S^2] / 2 (1 - rho), of service 0.5 or 3 with mean 1.
  const double load = 0.7, squares = 0.8 * 0.25 + 0.2 * 9;
  expect_mean(
      [&](std::uint64_t seed) {
        return mean_wait(poisson_jobs(load, seed, 40000,
                                      [](RandomStream& random) { return random.next_uniform() < 0.8 ? 0.5 : 3.0; }),
                         1);
      },
      load * squares / (2 * (1 - load)));
}

TEST(SimulateCluster, UnknownSchedulersAreListed) {
  EXPECT_TRUE(contains(error_of([] { make_scheduler("lottery", {}); }), "give one of fcfs, fcfs-any, easy"));
  EXPECT_TRUE(run({}, 2, "fcfs").outcomes.empty());
}

}  // namespace
}  // namespace braid::sim

#include "base/units.h"
#include "sim/cluster/recorded.h"
#include "sim/cluster/schedulers/gittins_index.h"
#include "sim/cluster/ticking.h"

namespace braid::sim {
namespace {

using namespace testing;

/// Services of some GPU-hours, such that all of them are attained at whole ticks.
std::vector<ClusterJob> long_jobs(std::int64_t gpus) {
  std::vector<ClusterJob> jobs;
  double now = 0;
  for (int count = *rc::gen::inRange(1, 25); count > 0; --count) {
    now += kTick * *rc::gen::inRange(0, 90);
    const auto wanted = *rc::gen::element(1, 1, 2, 3, 4, 6);
    const int ticks = *rc::gen::inRange(0, 900) / *rc::gen::element(1, 1, 20);
    jobs.push_back(job(now, kTick * ticks, wanted <= gpus ? wanted : 1));
  }
  return jobs;
}

double brute_force_index(const std::vector<double>& services, double attained) {
  double best = 0;
  for (const double until : services) {
    double longer = 0, end = 0, taken = 0;
    for (const double service : services) {
      if (service <= attained) continue;
      ++longer;
      end += service <= until;
      taken += std::min(service, until) - attained;
    }
    if (longer == 0) return std::numeric_limits<double>::infinity();
    if (until > attained) best = std::max(best, end / taken);
  }
  return best;
}

RC_GTEST_PROP(GittinsIndex, IsTheBestOverAllQuantaOfService, ()) {
  std::vector<double> services;
  for (int count = *rc::gen::inRange(1, 60); count > 0; --count) services.push_back(*rc::gen::inRange(0, 50));
  const GittinsIndex index(services);
  for (double attained = 0; attained <= 50; attained += 0.5) {
    const double expected = brute_force_index(services, attained), is = index.at(attained);
    RC_ASSERT(is == expected || std::abs(is - expected) < 1e-12 * expected);
  }
}

TEST(GittinsIndex, OfDistributionsKnownByHand) {
  // All alike: the nearer the end the larger.
  EXPECT_DOUBLE_EQ(GittinsIndex({10, 10, 10}).at(0), 0.1);
  EXPECT_DOUBLE_EQ(GittinsIndex({10, 10, 10}).at(6), 0.25);
  // Three of four end at 1, one at 100: 3/4 by 1, then one in the 99 that are left.
  EXPECT_DOUBLE_EQ(GittinsIndex({1, 1, 1, 100}).at(0), 0.75);
  EXPECT_DOUBLE_EQ(GittinsIndex({1, 1, 1, 100}).at(1), 1.0 / 99);
  EXPECT_EQ(GittinsIndex({1, 100}).at(100), std::numeric_limits<double>::infinity());
}

RC_GTEST_PROP(AttainedService, LasIsTwoQueuesOfAClockThatTicks, ()) {
  const std::int64_t gpus = *rc::gen::inRange(1, 9);
  const std::vector<ClusterJob> jobs = long_jobs(gpus);
  Ticking book{jobs, gpus, kTick};
  book.rank = [&](std::size_t j) {
    return std::pair(book.attained[j] * jobs[j].gpus < kHour ? 0.0 : 1.0, book.start[j]);
  };
  book.run();
  const ClusterRun made = run(jobs, gpus, "las");
  RC_ASSERT(starts(made) == book.start);
  RC_ASSERT(finishes(made) == book.finish);
}

RC_GTEST_PROP(AttainedService, GittinsRunsTheLargestIndexAtEveryMoment, ()) {
  const std::int64_t gpus = *rc::gen::inRange(1, 9);
  const std::vector<ClusterJob> jobs = long_jobs(gpus);
  std::vector<double> services;
  for (const ClusterJob& each : jobs) services.push_back(each.gpus * each.service_seconds);
  const GittinsIndex index(services);
  Ticking book{jobs, gpus, kTick};
  book.rank = [&](std::size_t j) {
    double taken_at = 0;
    for (double next = kHour / 10; next <= book.attained[j] * jobs[j].gpus; next *= 2) taken_at = next;
    return std::pair(-index.at(taken_at), book.start[j]);
  };
  book.run();
  const ClusterRun made = run(jobs, gpus, "gittins");
  RC_ASSERT(starts(made) == book.start);
  RC_ASSERT(finishes(made) == book.finish);
}

TEST(AttainedService, LasStopsAJobThatHadItsGpuHourForOneThatNeverRan) {
  // The second comes at 1800, when the first has had 0.5 h on 2 GPUs: a GPU-hour. The third waits its turn behind the
  // second, and the first goes on behind both.
  const ClusterRun made = run({job(0, 3000, 2), job(1800, 900, 2), job(1900, 600, 1)}, 2, "las");
  EXPECT_EQ(starts(made), (std::vector<double>{0, 1800, 2700}));
  EXPECT_EQ(finishes(made), (std::vector<double>{4500, 2700, 3300}));
  EXPECT_EQ(made.outcomes[0].preemptions, 1);
  // One that comes earlier waits until then.
  EXPECT_EQ(starts(run({job(0, 3000, 2), job(100, 900, 2)}, 2, "las"))[1], 1800);
}

TEST(AttainedService, GittinsOfJobsThatAreAllAlikeIsFcfs) {
  std::vector<ClusterJob> jobs;
  for (int j = 0; j < 30; ++j) jobs.push_back(job(700 * j, 5000));
  EXPECT_EQ(finishes(run(jobs, 3, "gittins")), finishes(run(jobs, 3, "fcfs")));
}

/// Exponential service, so that what a job has attained says nothing: on one GPU any order that does not look ahead
/// has the mean completion of processor sharing and fcfs, 1 / (mu - lambda).
TEST(AttainedService, OfExponentialServiceHasTheMeanCompletionOfProcessorSharing) {
  const double load = 0.7;
  for (const char* name : {"las", "gittins", "fcfs"}) {
    expect_mean(
        [&](std::uint64_t seed) {
          const auto jobs = poisson_jobs(load / kHour, seed, 20000, [](RandomStream& random) {
            return -kHour * std::log(1 - random.next_uniform());
          });
          return mean_completion(jobs, run(jobs, 1, name));
        },
        kHour / (1 - load));
  }
}

/// On one GPU the first queue sees nothing of the second: a queue whose services end at the threshold, whose wait
/// Pollaczek and Khinchin tell.
TEST(AttainedService, LasFirstStartsAreThoseOfAQueueOfCutServices) {
  const double load = 0.8, shortest = 600, longest = 20000, share = 0.8;
  const double mean = share * shortest + (1 - share) * longest, rate = load / mean;
  const double cut = share * shortest + (1 - share) * kHour;
  const double squares = share * shortest * shortest + (1 - share) * kHour * kHour;
  expect_mean(
      [&](std::uint64_t seed) {
        const auto jobs = poisson_jobs(rate, seed, 20000, [&](RandomStream& random) {
          return random.next_uniform() < share ? shortest : longest;
        });
        const ClusterRun made = run(jobs, 1, "las");
        double sum = 0;
        for (std::size_t j = 0; j < jobs.size(); ++j) sum += made.outcomes[j].start_seconds - jobs[j].submit_seconds;
        return sum / static_cast<double>(jobs.size());
      },
      rate * squares / (2 * (1 - rate * cut)));
}

}  // namespace
}  // namespace braid::sim

#include <map>
#include <set>

#include "sim/cluster/moments.h"
#include "sim/cluster/recorded.h"
#include "sim/cluster/ticking.h"

namespace braid::sim {
namespace {

using namespace testing;

constexpr double kRound = 360;

std::vector<ClusterJob> jobs_of_ticks(std::int64_t gpus) {
  std::vector<ClusterJob> jobs;
  double now = 0;
  for (int count = *rc::gen::inRange(1, 20); count > 0; --count) {
    now += kTick * *rc::gen::inRange(0, 40);
    jobs.push_back(job(now, kTick * *rc::gen::inRange(0, 200), *rc::gen::inRange(1, static_cast<int>(gpus) + 1)));
  }
  return jobs;
}

/// Rounds of a clock that ticks: keys are those of the round's beginning, or the first ones; what was fair is added up
/// tick by tick.
struct TickingRounds {
  Ticking book;
  std::function<double(std::size_t job)> key;
  std::vector<double> key_then, shares, counts;  // seconds of the cluster, job-seconds, since the submission

  TickingRounds(const std::vector<ClusterJob>& jobs, std::int64_t gpus)
      : book{jobs, gpus, kTick}, key_then(jobs.size()), shares(jobs.size(), 0), counts(jobs.size(), 0) {
    book.preempts = [this] { return std::fmod(book.now, kRound) == 0; };
    book.before = [this] {
      add_up();
      for (std::size_t j = 0; j < key_then.size(); ++j) {
        if (book.preempts() || book.jobs[j].submit_seconds == book.now) key_then[j] = std::round(key(j) * 1e9) / 1e9;
      }
    };
    book.rank = [this](std::size_t j) { return std::pair(key_then[j], 0.0); };
  }

 private:
  /// Those there at the tick before, until now.
  void add_up() {
    if (book.now > last_) {
      for (const std::size_t j : there_) {
        shares[j] += kTick / static_cast<double>(there_.size());
        counts[j] += kTick * static_cast<double>(there_.size());
      }
      last_ = book.now;
    }
    there_.clear();
    for (std::size_t j = 0; j < shares.size(); ++j) {
      if (book.is_there(j)) there_.insert(j);
    }
  }

  double last_ = 0;
  std::set<std::size_t> there_;
};

RC_GTEST_PROP(Rounds, MaxMinRunsWhoHadTheLeastOfItsShare, ()) {
  const std::int64_t gpus = *rc::gen::inRange(1, 9);
  const std::vector<ClusterJob> jobs = jobs_of_ticks(gpus);
  TickingRounds rounds(jobs, gpus);
  rounds.key = [&](std::size_t j) {
    const double share = rounds.shares[j] * static_cast<double>(gpus);
    return share > 0 ? rounds.book.attained[j] * jobs[j].gpus / share : 0;
  };
  rounds.book.run();
  const ClusterRun made = run(jobs, gpus, "max-min");
  RC_ASSERT(starts(made) == rounds.book.start);
  RC_ASSERT(finishes(made) == rounds.book.finish);
}

RC_GTEST_PROP(Rounds, FtfRunsWhoIsPredictedToBeTreatedWorst, ()) {
  const std::int64_t gpus = *rc::gen::inRange(1, 9);
  const std::vector<ClusterJob> jobs = jobs_of_ticks(gpus);
  TickingRounds rounds(jobs, gpus);
  rounds.key = [&](std::size_t j) {
    const double elapsed = rounds.book.now - jobs[j].submit_seconds;
    if (jobs[j].service_seconds == 0) return -kNever;
    if (elapsed <= 0) return -1.0;
    const double fair = std::max(1.0, rounds.counts[j] / elapsed * jobs[j].gpus / static_cast<double>(gpus));
    const double left = jobs[j].service_seconds - rounds.book.attained[j];
    return -(elapsed + left * fair) / (jobs[j].service_seconds * fair);
  };
  rounds.book.run();
  const ClusterRun made = run(jobs, gpus, "ftf");
  RC_ASSERT(starts(made) == rounds.book.start);
  RC_ASSERT(finishes(made) == rounds.book.finish);
}

/// When the first of equal jobs that are there all along has had its n rounds, all others have had at least n - 1.
RC_GTEST_PROP(Rounds, MaxMinGivesJobsThatAreAlikeTheSameTime, ()) {
  const int count = *rc::gen::inRange(1, 12), rounds = *rc::gen::inRange(1, 30);
  const std::int64_t gpus = *rc::gen::inRange(1, count + 1);
  const std::vector<ClusterJob> jobs(static_cast<std::size_t>(count), job(0, rounds * kRound));
  const double together = std::ceil((count * (rounds - 1) + 1) / static_cast<double>(gpus)) * kRound;
  for (const double finish : finishes(run(jobs, gpus, "max-min"))) RC_ASSERT(finish >= together);
}

TEST(Rounds, MaxMinTakesTurnsAtTheRoundsBeginnings) {
  const ClusterRun made = run({job(0, 1000), job(100, 500)}, 1, "max-min");
  EXPECT_EQ(starts(made), (std::vector<double>{0, 360}));
  // At 720 the first had 360 of 410 s, the second 360 of 310; at 1080 720 of 590 and 360 of 490.
  EXPECT_EQ(finishes(made), (std::vector<double>{1500, 1220}));
  EXPECT_EQ(made.outcomes[0].preemptions, 2);
  EXPECT_EQ(made.outcomes[1].preemptions, 1);
}

TEST(Rounds, FtfLetsTheJobGoThatLosesTheMostByWaiting) {
  // At 360 the second, of 600 s, has waited for 260: (260 + 600 * 2) / 1200 to the first's (360 + 2640 * 1.72) / 5167.
  const ClusterRun made = run({job(0, 3000), job(100, 600)}, 1, "ftf");
  EXPECT_EQ(starts(made)[1], 360);
}

TEST(Rounds, NobodyIsStoppedDuringARound) {
  const ClusterRun made = run({job(0, 350), job(10, 1000), job(20, 5)}, 1, "max-min");
  EXPECT_EQ(starts(made), (std::vector<double>{0, 350, 360}));
}

/// DRF as it is told, second by second.
std::vector<double> drf_by_the_book(const std::vector<ClusterJob>& jobs, std::int64_t gpus) {
  std::vector<double> start(jobs.size(), -1), end(jobs.size(), -1);
  for (double now = 0; std::count(start.begin(), start.end(), -1) > 0; now += 1) {
    for (bool again = true; again;) {
      again = false;
      std::int64_t free = gpus;
      std::map<std::int32_t, double> held, quota;
      for (const ClusterJob& each : jobs) quota[each.virtual_cluster] = each.quota;
      for (std::size_t j = 0; j < jobs.size(); ++j) {
        if (start[j] < 0 || end[j] <= now) continue;
        held[jobs[j].virtual_cluster] += jobs[j].gpus;
        free -= jobs[j].gpus;
      }
      while (true) {
        std::map<std::int32_t, std::size_t> next;
        for (std::size_t j = 0; j < jobs.size(); ++j) {
          if (start[j] < 0 && jobs[j].submit_seconds <= now) next.emplace(jobs[j].virtual_cluster, j);
        }
        const auto least = std::min_element(next.begin(), next.end(), [&](const auto& a, const auto& b) {
          return std::pair(held[a.first] / quota[a.first], a.second) <
                 std::pair(held[b.first] / quota[b.first], b.second);
        });
        if (least == next.end() || jobs[least->second].gpus > free) break;
        const std::size_t j = least->second;
        start[j] = now;
        end[j] = now + jobs[j].service_seconds;
        held[jobs[j].virtual_cluster] += jobs[j].gpus;
        free -= jobs[j].gpus;
        again = again || jobs[j].service_seconds == 0;
      }
    }
  }
  return start;
}

RC_GTEST_PROP(Drf, IsAsTheBookSays, ()) {
  const std::int64_t gpus = *rc::gen::inRange(1, 9);
  const std::vector<ClusterJob> jobs = any_jobs(static_cast<int>(gpus));
  RC_ASSERT(starts(run(jobs, gpus, "drf")) == drf_by_the_book(jobs, gpus));
}

TEST(Drf, GivesVirtualClustersTheSame) {
  // The first asks for all first; the second comes later, and takes turns until it holds as much.
  std::vector<ClusterJob> jobs;
  for (int j = 0; j < 8; ++j) jobs.push_back(job(0, 10 + j));
  for (int j = 0; j < 3; ++j) jobs.push_back(job(1, 100));
  for (std::size_t j = 0; j < jobs.size(); ++j) jobs[j].virtual_cluster = j < 8 ? 0 : 1;
  EXPECT_EQ(starts(run(jobs, 4, "drf")), (std::vector<double>{0, 0, 0, 0, 12, 13, 26, 28, 10, 11, 42}));
  // With three times the quota the second holds three GPUs as soon as the first's jobs end.
  for (std::size_t j = 8; j < jobs.size(); ++j) jobs[j].quota = 3;
  EXPECT_EQ(starts(run(jobs, 4, "drf")), (std::vector<double>{0, 0, 0, 0, 13, 27, 42, 58, 10, 11, 12}));
}

}  // namespace
}  // namespace braid::sim

#include "sim/cluster/outages.h"

#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "sim/cluster/moments.h"
#include "sim/cluster/recorded.h"
#include "sim/cluster/ticking.h"
#include "support.h"

namespace braid::sim {
namespace {

using namespace testing;

constexpr std::uint64_t kAll = 0b11111111;

ClusterRun run_with(const std::vector<ClusterJob>& jobs, GpuPool pool, const std::string& name, Outages outages,
                    double checkpoint_seconds) {
  const std::unique_ptr<Scheduler> scheduler = make_scheduler(name, jobs);
  TaskSets sets = exclusive_sets();
  InstanceRules rules;
  rules.outages = std::move(outages);
  rules.checkpoint_seconds = checkpoint_seconds;
  return simulate_cluster(jobs, std::move(pool), *scheduler, sets, rules);
}

/// In whole seconds, of a cluster of nodes of 8.
std::vector<Outage> any_outages(int nodes, int most_seconds) {
  std::vector<Outage> outages;
  for (int count = *rc::gen::inRange(0, 12); count > 0; --count) {
    const double from = *rc::gen::inRange(0, most_seconds);
    const std::uint64_t gpus = *rc::gen::arbitrary<bool>() ? kAll : 1ULL << *rc::gen::inRange(0, 8);
    outages.push_back({from, from + *rc::gen::inRange(0, 30), {*rc::gen::inRange(0, nodes), gpus}});
  }
  std::stable_sort(outages.begin(), outages.end(),
                   [](const Outage& a, const Outage& b) { return a.from_seconds < b.from_seconds; });
  return outages;
}

RC_GTEST_PROP(Outages, GpusAreOutAsLongAsAnyOutageSays, ()) {
  const std::vector<Outage> recorded = any_outages(3, 60);
  Outages outages(recorded);
  std::vector<std::uint64_t> broken(3, 0);
  for (double now = 0; now < 100; ++now) {
    if (outages.next() <= now) {
      RC_ASSERT(outages.next() == now);
      const Outages::Changes changes = outages.take(now);
      for (const NodeGpus& gpus : changes.repaired) {
        RC_ASSERT((broken[static_cast<std::size_t>(gpus.node)] & gpus.gpus) == gpus.gpus);
        broken[static_cast<std::size_t>(gpus.node)] &= ~gpus.gpus;
      }
      for (const NodeGpus& gpus : changes.broken) {
        RC_ASSERT((broken[static_cast<std::size_t>(gpus.node)] & gpus.gpus) == 0U);
        broken[static_cast<std::size_t>(gpus.node)] |= gpus.gpus;
      }
    }
    std::vector<std::uint64_t> expected(3, 0);
    for (const Outage& outage : recorded) {
      if (outage.from_seconds <= now && now < outage.to_seconds)
        expected[static_cast<std::size_t>(outage.gpus.node)] |= outage.gpus.gpus;
    }
    RC_ASSERT(broken == expected);
  }
  RC_ASSERT(outages.next() == kNever);
  RC_ASSERT(!outages.any_out());
}

/// Second by second, where all GPUs fail together: a job that runs then goes back to its last checkpoint.
RC_GTEST_PROP(Outages, JobsGoBackToTheirLastCheckpoint, ()) {
  const std::int64_t gpus = *rc::gen::inRange(1, 9);
  const std::vector<ClusterJob> jobs = any_jobs(static_cast<int>(gpus), 20);
  const double checkpoint = *rc::gen::inRange(1, 12);
  std::vector<Outage> outages = any_outages(1, 200);
  for (Outage& outage : outages) outage.gpus.gpus = (1ULL << gpus) - 1;
  const bool by_length = *rc::gen::arbitrary<bool>();

  Ticking clock{jobs, gpus};
  std::vector<double> since(jobs.size(), 0);  // last checkpoint, in attained seconds
  std::vector<int> restarts(jobs.size(), 0);
  double out_until = -1;
  clock.preempts = [] { return false; };
  clock.rank = [&](std::size_t j) {
    return std::pair(by_length ? jobs[j].service_seconds : 0, jobs[j].submit_seconds);
  };
  clock.before = [&] {
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      if (!clock.runs[j]) since[j] = clock.attained[j];
    }
    for (const Outage& outage : outages) {
      if (outage.from_seconds != clock.now || outage.to_seconds == outage.from_seconds) continue;
      out_until = std::max(out_until, outage.to_seconds);
      for (std::size_t j = 0; j < jobs.size(); ++j) {
        if (!clock.runs[j]) continue;
        const double done = clock.attained[j] - since[j];
        clock.attained[j] = since[j] + std::floor(done / checkpoint) * checkpoint;
        since[j] = clock.attained[j];
        clock.runs[j] = false;
        ++restarts[j];
      }
    }
    clock.gpus = clock.now < out_until ? 0 : gpus;
  };
  clock.run();

  const ClusterRun made =
      run_with(jobs, {1, gpus, true, Placement::packed}, by_length ? "sjf" : "fcfs-any", Outages(outages), checkpoint);
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    RC_ASSERT(made.outcomes[j].start_seconds == clock.start[j]);
    RC_ASSERT(made.outcomes[j].finish_seconds == clock.finish[j]);
    RC_ASSERT(made.outcomes[j].restarts == restarts[j]);
  }
}

RC_GTEST_PROP(Outages, EverySchedulerServesEveryJobThroughThem, ()) {
  const std::int64_t nodes = *rc::gen::inRange(1, 4);
  const std::vector<ClusterJob> jobs = any_jobs(static_cast<int>(8 * nodes));
  const std::vector<Outage> outages = any_outages(static_cast<int>(nodes), 200);
  const bool flat = *rc::gen::arbitrary<bool>();
  const auto placement = *rc::gen::element(Placement::packed, Placement::spread, Placement::frag);
  for (const SchedulerKind& kind : scheduler_kinds()) {
    if (kind.is_elastic) continue;
    const ClusterRun made =
        run_with(jobs, {nodes, 8, flat, placement}, std::string(kind.name), Outages(outages), *rc::gen::inRange(1, 9));
    double work = 0, lost = 0;
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      if (made.outcomes[j].rejected) continue;
      RC_ASSERT(made.outcomes[j].finished());
      work += jobs[j].service_seconds * jobs[j].gpus;
      lost += (made.outcomes[j].run_seconds - jobs[j].service_seconds) * jobs[j].gpus;
    }
    RC_ASSERT(std::abs(lost - made.lost_gpu_seconds) < 1e-9 * (1 + work));
    RC_ASSERT(std::abs(work + lost - made.sums.allocated_gpu_seconds) < 1e-9 * (1 + work));
  }
}

/// Of n pieces of service between checkpoints C apart, under failures of rate r and repairs of mean R: each takes
/// (1/r + R)(exp(r C) - 1) in the mean.
TEST(Outages, AJobTakesAsLongAsTheRenewalEquationSays) {
  constexpr double kCheckpoint = 600, kPieces = 20, kMtbf = 900, kRepair = 300;
  const std::vector<ClusterJob> jobs = {job(0, kPieces * kCheckpoint)};
  const auto completion = [&](std::uint64_t seed) {
    double sum = 0;
    constexpr std::uint64_t kRuns = 200;
    for (std::uint64_t r = 0; r < kRuns; ++r) {
      const FailureRates rates{.gpu_mtbf_seconds = kMtbf, .repair_seconds = kRepair};
      const Outages outages(rates, 1, 1, 0, kRuns * seed + r);
      sum += run_with(jobs, flat_pool(1), "fcfs", outages, kCheckpoint).outcomes[0].finish_seconds;
    }
    return sum / kRuns;
  };
  expect_mean(completion, kPieces * (kMtbf + kRepair) * (std::exp(kCheckpoint / kMtbf) - 1));
}

TEST(Outages, AGangFailsWithAnyOfItsGpus) {
  constexpr double kCheckpoint = 500, kMtbf = 8000, kNodeMtbf = 4000, kRepair = 1e-6;
  const std::vector<ClusterJob> jobs = {job(0, 10 * kCheckpoint, 8)};
  const auto completion = [&](std::uint64_t seed) {
    double sum = 0;
    constexpr std::uint64_t kRuns = 200;
    for (std::uint64_t r = 0; r < kRuns; ++r) {
      const FailureRates rates{.gpu_mtbf_seconds = kMtbf, .node_mtbf_seconds = kNodeMtbf, .repair_seconds = kRepair};
      const Outages outages(rates, 2, 4, 0, kRuns * seed + r);
      sum += run_with(jobs, {2, 4, false, Placement::packed}, "fcfs", outages, kCheckpoint).outcomes[0].finish_seconds;
    }
    return sum / kRuns;
  };
  const double rate = 8 / kMtbf + 2 / kNodeMtbf;
  expect_mean(completion, 10 / rate * (std::exp(rate * kCheckpoint) - 1));
}

TEST(Outages, GpusAreOutForTheShareOfTheirRepairs) {
  const std::vector<ClusterJob> jobs = {job(0, 1e6, 1)};
  const auto share = [&](std::uint64_t seed) {
    const FailureRates rates{.gpu_mtbf_seconds = 3000, .repair_seconds = 1000};
    const Outages outages(rates, 4, 2, 0, seed);
    const ClusterRun made = run_with(jobs, {4, 2, false, Placement::packed}, "fcfs", outages, 60);
    return made.sums.broken_gpu_seconds / made.end_seconds / 8;
  };
  expect_mean(share, 0.25);
}

TEST(Outages, TasksThatShareLoseWhatTheyDidTogether) {
  // Two tasks take two seconds a step together; each alone one.
  TaskSets sets({10}, {.most_tasks = 2}, [](const std::vector<std::int32_t>& counts, std::int32_t) {
    return SetRate{static_cast<double>(counts[0]), 0};
  });
  const std::vector<ClusterJob> jobs = {job(0, 10, 2), job(4, 10, 2)};
  InstanceRules rules;
  rules.outages = Outages({{11, 20, {0, 0b01}}});
  rules.checkpoint_seconds = 4;
  const auto scheduler = make_scheduler("fcfs", jobs);
  const ClusterRun made = simulate_cluster(jobs, {1, 2, false, Placement::packed}, *scheduler, sets, rules);
  // The second joins at 4, which is a checkpoint; at 8 there is another. Then 6 and 2 steps are done: 4 and 8 are left,
  // from 20 on: 4 together until 28, and 4 alone.
  EXPECT_EQ(finishes(made), (std::vector<double>{28, 32}));
  EXPECT_EQ(made.outcomes[0].restarts, 1);
  EXPECT_EQ(made.lost_gpu_seconds, 3 * 2);
  EXPECT_EQ(made.tokens, 200);
  EXPECT_EQ(made.lost_tokens, 2 * 1.5 * 10);
  EXPECT_EQ(made.sums.broken_gpu_seconds, 9);
  EXPECT_EQ(made.outages, 1);
}

TEST(Outages, NothingIsCountedAfterTheLastJob) {
  std::vector<ClusterJob> jobs = {job(0, 100), job(10000, 100, 9)};
  const ClusterRun made = run_with(jobs, flat_pool(4), "fcfs", Outages({{50, 9000, {1, 1}}}), 60);
  EXPECT_TRUE(made.outcomes[1].rejected);
  EXPECT_EQ(made.end_seconds, 100);
  EXPECT_EQ(made.sums.broken_gpu_seconds, 50);
  EXPECT_EQ(made.usage.last_seconds, 100);
}

TEST(Outages, WithoutCheckpointsAllIsLost) {
  const double never = std::numeric_limits<double>::infinity();
  for (const double checkpoint : {1e300, never}) {
    const ClusterRun made = run_with({job(0, 100)}, flat_pool(1), "fcfs", Outages({{60, 90, {0, 1}}}), checkpoint);
    EXPECT_EQ(made.outcomes[0].finish_seconds, 190);
    EXPECT_EQ(made.lost_gpu_seconds, 60);
  }
}

TEST(Outages, WhatNeverEndsIsSaid) {
  const std::vector<ClusterJob> jobs = {job(0, 1000)};
  const FailureRates rates{.gpu_mtbf_seconds = 1, .repair_seconds = 1};
  EXPECT_TRUE(contains(error_of([&] { run_with(jobs, flat_pool(1), "fcfs", Outages(rates, 1, 1, 0, 1), 100); }),
                       "none of 1 jobs ended"));
}

TEST(Outages, AreReadFromAFile) {
  const TestFolder folder;
  const auto read = [&](const std::string& text) { return read_outages(folder.write("outages.csv", text), 3, 4); };
  const std::vector<Outage> outages = read("node,gpu,from_s,to_s\n2,,50,60.5\n0,3,10,20\n");
  ASSERT_EQ(outages.size(), 2U);
  EXPECT_EQ(outages[0].from_seconds, 10);
  EXPECT_EQ(outages[0].gpus.gpus, 0b1000U);
  EXPECT_EQ(outages[1].to_seconds, 60.5);
  EXPECT_EQ(outages[1].gpus.node, 2);
  EXPECT_EQ(outages[1].gpus.gpus, 0b1111U);
  EXPECT_EQ(read("from_s,to_s,node\n1,2,0\n")[0].gpus.gpus, 0b1111U);
  const auto refused = [&](const std::string& text) { return error_of([&] { read(text); }); };
  EXPECT_TRUE(contains(refused(""), "is empty"));
  EXPECT_TRUE(contains(refused("from,to\n"), "from_s, to_s and node"));
  EXPECT_TRUE(contains(refused("from_s,to_s,node\n1,2\n"), ":2: 2 fields"));
  EXPECT_TRUE(contains(refused("from_s,to_s,node\n2,1,0\n"), "before it begins"));
  EXPECT_TRUE(contains(refused("from_s,to_s,node\n1,2,3\n"), "nodes are 0 to 2"));
  EXPECT_TRUE(contains(refused("from_s,to_s,node,gpu\n1,2,0,4\n"), "GPUs are 0 to 3"));
  EXPECT_TRUE(contains(refused("from_s,to_s,node\n1,x,0\n"), ":2:"));
}

}  // namespace
}  // namespace braid::sim

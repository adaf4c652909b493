#include <sstream>

#include "shell.h"
#include "sim/cluster/recorded.h"
#include "sim/cluster/study/trace_jobs.h"
#include "support.h"
#include "traces/read_trace.h"
#include "traces/transform.h"

namespace braid::sim {
namespace {

using namespace testing;

/// One that knows SimPy; empty when none does.
std::string python() {
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    if (run_shell(std::string(python) + " -c 'import simpy; simpy.Container'").status == 0) return python;
  }
  return "";
}

/// Starts and finishes, by an implementation that shares nothing with ours.
std::vector<std::pair<double, double>> simpy_fcfs(const std::vector<ClusterJob>& jobs, std::int64_t gpus) {
  const TestFolder folder;
  std::string rows;
  for (const ClusterJob& each : jobs)
    rows += fmt::format("{},{},{}\n", each.submit_seconds, each.service_seconds, each.gpus);
  const std::string file = folder.write("jobs.csv", rows).string();
  const Outcome outcome =
      run_shell(fmt::format("{} {}/tests/sim/cluster/simpy_fcfs.py {} < {}", python(), BRAID_SOURCE_DIR, gpus, file));
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  std::vector<std::pair<double, double>> times;
  std::istringstream lines(outcome.text);
  char comma = 0;
  for (double start = 0, finish = 0; lines >> start >> comma >> finish;) times.emplace_back(start, finish);
  return times;
}

/// Of a trace's jobs that are not larger than the cluster, at a load.
void expect_the_same(const std::string& name, double load, std::int64_t gpus) {
  const std::filesystem::path file = std::filesystem::path(BRAID_SOURCE_DIR) / "../shared/traces" / name;
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "the traces are not here";
  if (python().empty()) GTEST_SKIP() << "python3 has no SimPy; install python3-simpy3";
  traces::Trace trace = traces::read_trace(file);
  std::erase_if(trace.jobs, [&](const traces::Job& each) { return each.gpus > gpus; });
  const std::vector<ClusterJob> jobs = recorded_jobs(traces::scale_to_load(trace, load, gpus));
  const ClusterRun made = run(jobs, gpus, "fcfs");
  const auto expected = simpy_fcfs(jobs, gpus);
  ASSERT_EQ(expected.size(), jobs.size());
  constexpr double kMillisecond = 1e-3;
  std::size_t waited = 0;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    ASSERT_NEAR(made.outcomes[j].start_seconds, expected[j].first, kMillisecond) << "job " << j;
    ASSERT_NEAR(made.outcomes[j].finish_seconds, expected[j].second, kMillisecond) << "job " << j;
    waited += made.outcomes[j].start_seconds > jobs[j].submit_seconds;
  }
  EXPECT_GT(waited, jobs.size() / 5) << "too few to say anything";
}

TEST(SimPy, StartsAndEndsEachOfPhillysJobsAtTheSameTime) {
  expect_the_same("philly.csv", 0.9, 512);
}

TEST(SimPy, StartsAndEndsEachOfItpsJobsAtTheSameTime) {
  expect_the_same("itp_cluster02.csv", 0.9, 256);
}

}  // namespace
}  // namespace braid::sim

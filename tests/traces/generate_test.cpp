#include "traces/generate.h"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "support.h"
#include "traces/trace_statistics.h"
#include "traces/transform.h"

namespace braid::traces {
namespace {

/// Moments by adding up quantiles.
std::pair<double, double> summed_moments(const BoundedPareto& pareto) {
  constexpr int kSteps = 2'000'000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double value = pareto.quantile((i + 0.5) / kSteps);
    sum += value;
    squares += value * value;
  }
  return {sum / kSteps, squares / kSteps};
}

TEST(Generate, BoundedParetoHasTheMeanAndDeviationAskedFor) {
  for (const auto& [mean, deviation, longest] :
       {std::array{100.0, 50.0, 10000.0}, std::array{22356.0, 36774.0, 60 * 86400.0}, std::array{10.0, 30.0, 1000.0}}) {
    const BoundedPareto pareto = bounded_pareto(mean, deviation, longest);
    const auto [first, second] = summed_moments(pareto);
    EXPECT_NEAR(first, mean, 0.01 * mean);
    EXPECT_NEAR(std::sqrt(second - first * first), deviation, 0.02 * deviation);
    EXPECT_NEAR(pareto.quantile(1), longest, 1e-6 * longest);
  }
  EXPECT_TRUE(contains(error_of([] { bounded_pareto(100, 1000, 200); }), "give a deviation between"));
}

TEST(Generate, TheDefaultIsMuxTunesWeek) {
  const TraceStatistics week = statistics_of(generate({}));
  // Five standard errors of a mean of 26,107 draws; the deviation of a heavy tail is known less well.
  const double error = 612.9 / std::sqrt(26107.0);
  EXPECT_NEAR(week.duration.mean / 60, 372.6, 5 * error);
  EXPECT_NEAR(week.duration.deviation / 60, 612.9, 0.15 * 612.9);
  EXPECT_NEAR(week.jobs_per_minute, 2.59, 5 * 2.59 / std::sqrt(26107.0));
  EXPECT_NEAR(week.interarrival_variation, 1, 0.05);
  EXPECT_NEAR(week.span_seconds, 7 * 86400, 0.04 * 7 * 86400);
}

TEST(Generate, BurstsHaveTheVariationAskedFor) {
  Generator wanted;
  wanted.burstiness = 3;
  wanted.jobs = 200000;
  const TraceStatistics bursts = statistics_of(generate(wanted));
  EXPECT_NEAR(bursts.interarrival_variation, 3, 0.1);
  EXPECT_NEAR(bursts.jobs_per_minute, 2.59, 0.1);
}

TEST(Generate, TheSameSeedGivesTheSameJobs) {
  Generator wanted;
  wanted.jobs = 500;
  wanted.gpus = {{1, 3}, {4, 1}};
  wanted.virtual_clusters = 3;
  const Trace once = generate(wanted);
  EXPECT_EQ(once.jobs, generate(wanted).jobs);
  wanted.seed = 2;
  EXPECT_NE(once.jobs, generate(wanted).jobs);
  const TraceStatistics statistics = statistics_of(once);
  EXPECT_NEAR(static_cast<double>(statistics.jobs_by_gpus.at(4)), 125, 50);
  EXPECT_EQ(statistics.virtual_clusters.size(), 3U);
}

TEST(Generate, RefusesWhatCannotBe) {
  const auto refuses = [](auto change) {
    Generator wanted;
    change(wanted);
    EXPECT_THROW(generate(wanted), Error);
  };
  refuses([](Generator& wanted) { wanted.jobs = 0; });
  refuses([](Generator& wanted) { wanted.jobs_per_minute = 0; });
  refuses([](Generator& wanted) { wanted.jobs_per_minute = std::nan(""); });
  refuses([](Generator& wanted) { wanted.burstiness = 0.5; });
  refuses([](Generator& wanted) { wanted.duration_mean_seconds = -1; });
  refuses([](Generator& wanted) { wanted.gpus = {{0, 1}}; });
  refuses([](Generator& wanted) { wanted.gpus = {}; });
}

Trace some_trace() {
  Generator wanted;
  wanted.jobs = 2000;
  wanted.virtual_clusters = 2;
  wanted.gpus = {{1, 1}, {8, 1}};
  return generate(wanted);
}

TEST(Transform, SlicesPartitionATrace) {
  const Trace trace = some_trace();
  const double middle = trace.jobs[700].submit_seconds;
  Slice before, after;
  before.to_seconds = after.from_seconds = middle;
  EXPECT_EQ(slice(trace, before).jobs.size(), 700U);
  EXPECT_EQ(slice(trace, after).jobs.size(), 1300U);
  Slice one;
  one.virtual_cluster = "vc1";
  one.most_gpus = 4;
  for (const Job& job : slice(trace, one).jobs) EXPECT_TRUE(job.virtual_cluster == 1 && job.gpus == 1);
  one.virtual_cluster = "vc9";
  EXPECT_TRUE(contains(error_of([&] { slice(trace, one); }), "give one of vc0, vc1"));
  Slice none;
  none.from_seconds = 1e9;
  EXPECT_TRUE(contains(error_of([&] { slice(trace, none); }), "none of its 2000 jobs"));
}

RC_GTEST_PROP(Transform, ALoadAskedForIsTheLoadOffered, ()) {
  const Trace trace = some_trace();
  const double load = *rc::gen::inRange(1, 400) / 100.0;
  const std::int64_t gpus = *rc::gen::inRange(1, 1000);
  const std::int32_t each = *rc::gen::inRange(0, 8);
  RC_ASSERT(std::abs(offered_load(scale_to_load(trace, load, gpus, each), gpus, each) / load - 1) < 1e-9);
}

TEST(Transform, ResamplingKeepsTheKindsOfJobs) {
  const Trace trace = some_trace();
  const Trace drawn = resample(trace, 20000, 10, 3);
  const TraceStatistics before = statistics_of(trace), after = statistics_of(drawn);
  EXPECT_EQ(after.jobs, 20000);
  EXPECT_NEAR(after.jobs_per_minute, 10, 0.4);
  EXPECT_NEAR(after.duration.mean, before.duration.mean, 5 * before.duration.deviation / std::sqrt(20000.0));
  EXPECT_LE(after.duration.most, before.duration.most);
  EXPECT_EQ(drawn.jobs, resample(trace, 20000, 10, 3).jobs);
  for (std::size_t i = 1; i < drawn.jobs.size(); ++i)
    ASSERT_LE(drawn.jobs[i - 1].submit_seconds, drawn.jobs[i].submit_seconds);
}

TEST(Statistics, HoursOfTheDay) {
  Trace trace;
  for (const double hour : {0.5, 1.5, 25.5, 49.5}) {
    Job job;
    job.submit_seconds = hour * 3600;
    job.duration_seconds = 10;
    trace.jobs.push_back(job);
  }
  const TraceStatistics statistics = statistics_of(trace);
  EXPECT_DOUBLE_EQ(statistics.jobs_per_minute_of_hour[1], 3 / 150.0);
  EXPECT_DOUBLE_EQ(statistics.jobs_per_minute_of_hour[0], 1 / 150.0);
  EXPECT_EQ(statistics.jobs_per_minute_of_hour[5], 0);
  EXPECT_DOUBLE_EQ(offered_load(trace, 2), 40 / (49 * 3600.0) / 2);
}

}  // namespace
}  // namespace braid::traces

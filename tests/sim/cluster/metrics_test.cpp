#include "sim/cluster/metrics.h"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/cluster/scheduler.h"
#include "support.h"

namespace braid::sim {
namespace {

double value_of(const std::vector<Metric>& metrics, const std::string& name) {
  for (const Metric& metric : metrics) {
    if (metric.name == name) return metric.value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

ClusterJob job_due(double submit, double service, std::int32_t gpus, double deadline) {
  ClusterJob made;
  made.submit_seconds = submit;
  made.service_seconds = made.reference_seconds = service;
  made.gpus = gpus;
  made.deadline_seconds = deadline;
  return made;
}

/// Two GPUs; the second job waits for the first, the third for the second.
TEST(Metrics, AreWhatAPersonCounts) {
  const std::vector<ClusterJob> jobs = {job_due(0, 10, 2, 9), job_due(2, 4, 1, 14), job_due(3, 6, 2, 30),
                                        job_due(3, 6, 3, 30)};
  TaskSets sets({50}, {.most_tasks = 1}, [](const std::vector<std::int32_t>&, std::int32_t) {
    return SetRate{2, 0, 3};
  });
  // Alone a step takes 2 s.
  const auto scheduler = make_scheduler("fcfs", jobs);
  const ClusterRun run = simulate_cluster(jobs, {2, 1, true, Placement::packed}, *scheduler, sets);
  MetricContext context;
  context.gpus = 2;
  context.kinds = {KindCost{2, 1000}};
  context.step_tokens = {50};
  context.step_samples = {5};
  context.peak_flops = 1000;
  context.power = costmodel::Power{100, 300};
  context.gpu_hour_price = 1.5;
  const std::vector<Metric> metrics = metrics_of(jobs, run, context);
  const auto metric = [&](const char* name) { return value_of(metrics, name); };
  EXPECT_EQ(metric("jobs"), 4);
  EXPECT_EQ(metric("finished"), 3);
  EXPECT_EQ(metric("rejected"), 1);
  EXPECT_EQ(metric("makespan_seconds"), 20);
  // 20 s of service are 10 steps.
  EXPECT_EQ(metric("tokens_per_second"), 25);
  EXPECT_EQ(metric("samples_per_second"), 2.5);
  EXPECT_EQ(metric("completion_mean_seconds"), (10 + 12 + 17) / 3.0);
  EXPECT_EQ(metric("completion_median_seconds"), 12);
  EXPECT_EQ(metric("queueing_mean_seconds"), (0 + 8 + 11) / 3.0);
  EXPECT_EQ(metric("gpu_allocation"), (20 + 4 + 12) / 40.0);
  EXPECT_EQ(metric("free_while_waiting"), 4 / 40.0);
  EXPECT_EQ(metric("gpu_utilization"), 10 * 1000 / 40000.0);
  EXPECT_EQ(metric("gpu_hours"), 36 / 3600.0);
  EXPECT_EQ(metric("cost"), 1.5 * 36 / 3600.0);
  // Busy 30 of 40 GPU-seconds.
  EXPECT_NEAR(metric("energy_kwh"), (40 * 100 + 30 * 200) / 3.6e6, 1e-12);
  EXPECT_EQ(metric("deadlines_met"), 2 / 3.0);
  // There were 1, 2, 3, 2, 1 jobs from 0, 2, 3, 10, 14 on. The first saw 2.5 in the mean and needs both GPUs: its share
  // would have made 10 s 25 s.
  const double first = 10 / 25.0, second = 12 / (4 * (31 / 12.0) / 2), third = 17 / (6 * 35 / 17.0);
  EXPECT_NEAR(metric("finish_time_fairness_max"), std::max({first, second, third}), 1e-12);
  EXPECT_NEAR(metric("finish_time_fairness_mean"), (first + second + third) / 3, 1e-12);
}

TEST(Metrics, WhatIsDueAfterAHorizonIsNotMissed) {
  // One in time, one late, one that is due in time to come, one not submitted yet.
  const std::vector<ClusterJob> jobs = {job_due(0, 10, 1, 12), job_due(0, 10, 1, 12), job_due(0, 90, 1, 95),
                                        job_due(40, 10, 1, 60)};
  TaskSets sets = exclusive_sets();
  const auto scheduler = make_scheduler("fcfs", jobs);
  InstanceRules rules;
  rules.horizon_seconds = 30;
  const ClusterRun run = simulate_cluster(jobs, {1, 1, true, Placement::packed}, *scheduler, sets, rules);
  MetricContext context;
  context.gpus = 1;
  EXPECT_EQ(value_of(metrics_of(jobs, run, context), "deadlines_met"), 0.5);
}

TEST(Metrics, IntervalsAreStudents) {
  const std::vector<SeedMean> means = over_seeds({{{"a", 1}, {"b", 5}}, {{"a", 2}}, {{"a", 6}, {"b", 5}}});
  ASSERT_EQ(means.size(), 1U);
  EXPECT_EQ(means[0].mean, 3);
  // t of two degrees of freedom is 4.3027; the deviation is sqrt(7).
  EXPECT_NEAR(*means[0].half_width, 4.30265 * std::sqrt(7.0 / 3), 1e-4);
  EXPECT_FALSE(over_seeds({{{"a", 1}}})[0].half_width);
}

TEST(UsageMeter, SpreadsWhatLastsOverItsBins) {
  UsageMeter meter(100, 10);
  meter.add(105, 2, 1, 0, 50);
  meter.add(125, 4, 2, 1, 200);
  const Usage usage = meter.finish(1e9);
  ASSERT_EQ(usage.bins.size(), 3U);
  EXPECT_EQ(usage.bins[0].gpus, 3);
  EXPECT_EQ(usage.bins[1].gpus, 4);
  EXPECT_EQ(usage.bins[2].gpus, 4);
  EXPECT_EQ(usage.bins[0].tokens, 100);
  EXPECT_EQ(usage.bins[1].tokens, 100);
  EXPECT_EQ(usage.bins[2].tokens, 50);
  EXPECT_EQ(usage.bins[0].waiting, 0.5);
}

/// Wherever the first moment lies, and however bins' borders round.
RC_GTEST_PROP(UsageMeter, NeverPutsMoreIntoABinThanItHolds, ()) {
  const double first = *rc::gen::inRange(0, 1'000'000'000) / 1000.0, bin = *rc::gen::element(3600.0, 0.1, 7.3);
  UsageMeter meter(first, bin);
  double now = first;
  for (int step = *rc::gen::inRange(1, 6); step > 0; --step) {
    now = *rc::gen::arbitrary<bool>() ? now + *rc::gen::inRange(0, 100'000) / 1000.0 * bin
                                      : first + std::ceil((now - first) / bin) * bin;
    meter.add(now, 4, 1, 2, 0);
  }
  const Usage usage = meter.finish(now);
  for (std::size_t b = 0; b < usage.bins.size(); ++b) {
    if (usage.first_seconds + static_cast<double>(b) * bin >= now) continue;
    RC_ASSERT(std::abs(usage.bins[b].gpus - 4) < 1e-6);
    RC_ASSERT(std::abs(usage.bins[b].waiting - 2) < 1e-6);
  }
}

TEST(UsageMeter, ARunOfCenturiesIsRefused) {
  UsageMeter meter(0, 3600);
  EXPECT_TRUE(contains(error_of([&] { meter.add(1e12, 1, 1, 1, 1); }), "are the times in seconds?"));
}

TEST(TokenMeter, InstancesBillFromTheirBeginOn) {
  TokenMeter tokens;
  tokens.pass(10);
  tokens.add_rate(3, 10);
  tokens.add_rate(5, 14);
  tokens.add_rate(7, 14);
  tokens.add_rate(-7, 14);  // taken back before it began
  EXPECT_EQ(tokens.at(12) - tokens.at(10), 6);
  EXPECT_EQ(tokens.next_begin(), 14);
  tokens.pass(14);
  EXPECT_EQ(tokens.at(15) - tokens.at(14), 8);
  tokens.add_rate(-5, 14);
  EXPECT_EQ(tokens.at(15) - tokens.at(14), 3);
}

}  // namespace
}  // namespace braid::sim

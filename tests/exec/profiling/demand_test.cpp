#include "exec/profiling/demand.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/parallel.h"
#include "costmodel/shapes.h"
#include "exec/devices.h"
#include "exec/profiling/coverage.h"
#include "exec/profiling/measure.h"
#include "exec/profiling/plan_director.h"
#include "planner/policies/registry.h"
#include "planner/search/make_plan.h"
#include "planner/window/window.h"
#include "sim/replay.h"
#include "support.h"

namespace braid::exec {
namespace {

using costmodel::Operator;
using costmodel::Pass;

costmodel::OperatorCall linear(std::int64_t tokens) {
  return {Operator::linear, Pass::forward, {64, 64}, tokens};
}

costmodel::Profile profile_at(std::initializer_list<std::int64_t> tokens) {
  costmodel::Profile profile;
  for (const std::int64_t count : tokens) {
    costmodel::ProfileEntry& entry = profile.entries.emplace_back();
    entry.shape = {64, 64};
    entry.tokens = count;
    entry.seconds = static_cast<double>(count);
  }
  return profile;
}

TEST(Coverage, IsNearWhereSomethingAlikeWasMeasured) {
  const Coverage coverage(profile_at({100, 130, 1000}));
  for (const std::int64_t tokens : {100, 102, 115, 130, 1000})
    EXPECT_EQ(coverage.distance(linear(tokens)), 0) << tokens;
  EXPECT_EQ(coverage.distance(linear(10)), 1);
  EXPECT_EQ(coverage.distance(linear(2000)), 1);
  EXPECT_GT(coverage.distance(linear(1200)), 0.2);
  EXPECT_GT(coverage.distance(linear(400)), 0.2) << "between points far apart";
  EXPECT_LE(coverage.distance(linear(400)), 0.5) << "yet better than beyond";
  costmodel::OperatorCall backward = linear(100);
  backward.pass = Pass::backward;
  EXPECT_EQ(coverage.distance(backward), 1) << "nothing alike";
}

TEST(Coverage, GrowsWithWhatIsMeasured) {
  Coverage coverage(profile_at({100}));
  const double before = coverage.distance(linear(3000));
  coverage.add(linear(3000));
  EXPECT_LT(coverage.distance(linear(3000)), before);
  EXPECT_EQ(coverage.distance(linear(3000)), 0);
}

/// Two tasks on a small backbone, and plans of theirs.
struct DirectedStudy {
  DirectedStudy() {
    workload.backbone = costmodel::small_backbone();
    std::vector<std::vector<workload::SampleSize>> sizes;
    for (std::int64_t t = 0; t < 2; ++t) {
      workload::Task& task = workload.tasks.emplace_back();
      task.name = "task" + std::to_string(t);
      task.max_length = 64;
      task.adapter = costmodel::adapter_on_all(4 + 4 * t);
      task.global_batch_size = 8;
      task.steps = 4;
      sizes.emplace_back();
      for (std::int64_t i = 0; i < 32; ++i) sizes.back().push_back({10 + (7 * i + t) % 50, 5});
      adapters.push_back(task.adapter);
    }
    samples.emplace(workload.tasks, std::move(sizes));
    cluster = workload::local_cluster(1);
  }

  planner::Plan plan(const costmodel::CostModel& cost) const {
    return planner::make_plan({workload, cluster, *samples, cost, judge, {}}, choices[0]);
  }

  MeasuringRules rules() const { return {workload.backbone, adapters, 2}; }

  /// With all that is `measured`, as a machine of so many FLOP/s would take it.
  costmodel::Profile profile_of(std::span<const MeasuredPoint> measured) const {
    costmodel::Profile profile;
    profile.machine = "made up";
    profile.memory_bytes = Bytes{8} << 30;
    const auto add = [&](Operator op, Pass pass, costmodel::OperatorShape shape, std::int64_t tokens,
                         std::int64_t context, std::int64_t prefix) {
      costmodel::ProfileEntry& entry = profile.entries.emplace_back();
      entry.op = op, entry.pass = pass, entry.shape = shape;
      entry.tokens = tokens, entry.context = context, entry.prefix = prefix;
      entry.seconds = 1e-6 + 1e-8 * static_cast<double>(tokens);
    };
    for (const MeasuredPoint& point : measured) {
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        for (const costmodel::OperatorCall& call :
             calls_of(point, workload.backbone, {2, true, true}, adapters, pass, costmodel::Storage{}))
          add(call.op, call.pass, call.shape, call.tokens, call.context, call.prefix);
      }
    }
    for (const std::int64_t numbers : {1000, 100000}) {
      add(Operator::adamw, Pass::forward, {}, numbers, 0, 0);
      add(Operator::squared_norm, Pass::forward, {}, numbers, 0, 0);
    }
    return profile;
  }

  planner::Judge judge = [](const planner::Program& program, const planner::Durations& durations) {
    return sim::replay(program, durations);
  };
  std::vector<planner::PolicyChoice> choices = planner::parse_policies("megatron-pp:pad_to=none");
  workload::Workload workload;
  workload::Cluster cluster;
  std::vector<costmodel::AdapterShape> adapters;
  std::optional<workload::SampleIndex> samples;
};

TEST(Demand, SharesOfAPlansMicrobatchesAddUpToOne) {
  const DirectedStudy study;
  const costmodel::CostModel cost(study.profile_of(basic_points(study.adapters, 60)));
  const planner::Plan plan = study.plan(cost);
  double sum = 0;
  for (const Demand& demand : demand_of(plan.fixed, {study.workload, *study.samples}, cost)) {
    EXPECT_GT(demand.share, 0);
    EXPECT_GT(demand.point.tokens(), 0);
    sum += demand.share;
  }
  EXPECT_NEAR(sum, 1, 1e-9);
}

TEST(Demand, WhatTellsMostIsAskedForUntilAllIsKnown) {
  const DirectedStudy study;
  std::vector<MeasuredPoint> measured = basic_points(study.adapters, 60);
  const costmodel::CostModel cost(study.profile_of(measured));
  const std::vector<Demand> demands = demand_of(study.plan(cost).fixed, {study.workload, *study.samples}, cost);
  const std::vector<MeasuredPoint> telling = most_telling(demands, cost, study.rules());
  ASSERT_FALSE(telling.empty());
  measured.insert(measured.end(), telling.begin(), telling.end());
  const costmodel::CostModel knows(study.profile_of(measured));
  EXPECT_TRUE(most_telling(demands, knows, study.rules()).empty());
}

TEST(Demand, NothingIsAskedForThatTheTimeIsTooShortFor) {
  const DirectedStudy study;
  const costmodel::CostModel cost(study.profile_of(basic_points(study.adapters, 60)));
  const std::vector<Demand> demands = demand_of(study.plan(cost).fixed, {study.workload, *study.samples}, cost);
  MeasuringRules hurried = study.rules();
  hurried.seconds = 1e-6;
  EXPECT_TRUE(most_telling(demands, cost, hurried).empty());
  // Passes that would take too long go through fewer layers, or hold fewer samples.
  MeasuringRules rules = study.rules();
  rules.layers = 6;
  rules.seconds_a_pass = 3e-4;
  for (const MeasuredPoint& point : most_telling(demands, cost, rules)) {
    EXPECT_GE(point.layers, 2);
    EXPECT_LT(point.layers, 6);
  }
}

/// Answers at once, with made-up times.
int rounds_until_done(const DirectedStudy& study, std::vector<MeasuredPoint> measured, double budget) {
  PlanDirector director(study.workload, study.cluster, *study.samples, study.choices, {}, planner::Preference::speed,
                        study.judge, 1);
  for (int round = 0;; ++round) {
    if (round > 100) return -1;
    const costmodel::Profile known = measured.empty() ? costmodel::Profile{} : study.profile_of(measured);
    const std::vector<MeasuredPoint> more = director.next(known, budget);
    if (more.empty()) return round;
    measured.insert(measured.end(), more.begin(), more.end());
  }
}

TEST(PlanDirector, EndsOnceItsPlansRestOnWhatWasMeasured) {
  const DirectedStudy study;
  EXPECT_GT(rounds_until_done(study, {}, 1000), 2);
  // What is known already is not asked for; without time only what nothing can be said without is.
  EXPECT_EQ(rounds_until_done(study, {}, 0), 2);
  EXPECT_EQ(rounds_until_done(study, basic_points(study.adapters, 60), 0), 0);
}

TEST(MeasureProfile, AddsToWhatIsKnownAndKeepsToItsBudget) {
  const DirectedStudy study;
  const std::unique_ptr<Communicator> communicator = make_local_communicator();
  set_thread_count(1);
  MeasureRequest request;
  request.backbone = study.workload.backbone;
  request.adapters = study.adapters;
  std::int64_t asked = 0;
  const MeasuredPoint needed = [] {
    MeasuredPoint point = uniform_point(0, 48, 12, 0, 20);
    point.attends = point.needed = true;
    return point;
  }();
  request.next = [&](const costmodel::Profile&, double) {
    return asked++ == 0 ? std::vector{needed, uniform_point(1, 96, 12, 0, 20)} : std::vector<MeasuredPoint>{};
  };
  request.budget_seconds = 1e-9;
  const costmodel::Profile first = measure_profile(request, *communicator, cpu_device());
  const auto has = [](const costmodel::Profile& profile, std::int64_t tokens) {
    return std::any_of(profile.entries.begin(), profile.entries.end(), [&](const costmodel::ProfileEntry& entry) {
      return entry.op == Operator::linear && entry.tokens == tokens;
    });
  };
  EXPECT_TRUE(has(first, 48)) << "it was needed";
  EXPECT_FALSE(has(first, 96)) << "there was no time";
  EXPECT_GT(first.reference_pass_seconds, 0);
  EXPECT_GT(first.pass_skew, 0);
  EXPECT_EQ(first.cores, static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));

  asked = 0;
  request.known = &first;
  request.budget_seconds = 60;
  request.next = [&](const costmodel::Profile& known, double) {
    EXPECT_TRUE(has(known, 48)) << "what is known is told";
    return asked++ == 0 ? std::vector{uniform_point(1, 96, 12, 0, 20)} : std::vector<MeasuredPoint>{};
  };
  const costmodel::Profile second = measure_profile(request, *communicator, cpu_device());
  EXPECT_TRUE(has(second, 48) && has(second, 96));
  EXPECT_EQ(second.reference_pass_seconds, first.reference_pass_seconds) << "told at the first one's pace";
  for (const costmodel::ProfileEntry& entry : first.entries) {
    const auto same = std::find_if(second.entries.begin(), second.entries.end(), [&](const auto& other) {
      return other.op == entry.op && other.pass == entry.pass && other.shape == entry.shape &&
             other.tokens == entry.tokens && other.context == entry.context && other.prefix == entry.prefix;
    });
    ASSERT_NE(same, second.entries.end());
    if (entry.op == Operator::adamw) {
      EXPECT_EQ(same->seconds, entry.seconds) << "not measured again";
    }
  }
}

}  // namespace
}  // namespace braid::exec

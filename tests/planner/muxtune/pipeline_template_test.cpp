#include "planner/muxtune/pipeline_template.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/error.h"
#include "planner/closed_forms.h"
#include "planner/pipeline_generators.h"
#include "planner/pipeline_orders.h"

namespace braid::planner {
namespace {

using namespace testing;

PipelineInstance any_instance() {
  StudyShape shape = any_shape();
  shape.unevenness = *rc::gen::element(0.0, 0.3, 2.0);
  shape.chunks = *rc::gen::element(1, 1, 4);
  shape.chunk_spread = *rc::gen::element(1.0, 3.0);
  shape.memory = *rc::gen::element(0.0, 1.0, 1.7, 4.0);
  shape.message = *rc::gen::element(0.0, 0.5, 3.0);
  shape.backward_ratio = *rc::gen::element(0.7, 1.0, 2.0);
  RandomStream random(any_seed());
  return random_instance(shape, random);
}

TemplateRules any_rules() {
  const auto flag = [] { return *rc::gen::arbitrary<bool>(); };
  return {.descending = flag(), .consecutive = flag(), .eager = flag(), .backward_first = flag()};
}

/// A single bucket, and its stages' seconds as the closed forms take them.
struct EqualJobs {
  PipelineInstance instance;
  std::vector<double> seconds;
  std::int64_t count = 0;
};

EqualJobs any_equal_jobs(double unevenness, bool last_stage_slowest) {
  StudyShape shape = any_shape();
  shape.buckets = 1;
  shape.most_jobs = 20;
  shape.unevenness = unevenness;
  RandomStream random(any_seed());
  EqualJobs equal{random_instance(shape, random), {}, 0};
  for (PipelineJob& job : equal.instance.jobs) {
    if (last_stage_slowest) std::sort(job.forward.begin(), job.forward.end());
    job.backward = job.forward;
  }
  equal.seconds.assign(equal.instance.jobs[0].forward.begin(), equal.instance.jobs[0].forward.end());
  equal.count = static_cast<std::int64_t>(equal.instance.jobs.size());
  return equal;
}

RC_GTEST_PROP(PipelineTemplate, StartsAreTheEarliestThatItsOrderAllows, ()) {
  const PipelineInstance instance = any_instance();
  const TemplateRules rules = any_rules();
  const PipelineSchedule schedule = schedule_of(instance, rules);
  const std::optional<DerivedTimes> times = derive_times(instance, schedule.stages);
  RC_ASSERT(times.has_value());
  for (std::size_t s = 0; s < schedule.stages.size(); ++s) {
    for (std::size_t i = 0; i < schedule.stages[s].size(); ++i) {
      RC_ASSERT(schedule.stages[s][i].start == times->start[s][i]);
    }
  }
  RC_ASSERT(schedule.makespan == times->makespan);
  RC_ASSERT(schedule.makespan >= busiest_stage_bound(instance));
  RC_ASSERT(schedule.makespan ==
            pipeline_makespan(instance.jobs, instance.stages, instance.memory, instance.messages, rules));
}

/// The groups in the order in which a stage's passes of one direction come; checks that each comes in one piece.
std::vector<std::int32_t> groups_in_order(const PipelineInstance& instance, const std::vector<PipelineSlot>& slots,
                                          Kind pass) {
  std::vector<std::int32_t> jobs;
  for (std::size_t i = 0; i < slots.size();) {
    const std::int32_t chunks = job_of(instance, slots[i]).chunks;
    for (std::int32_t k = 0; k < chunks; ++k) {
      const PipelineSlot& slot = slots.at(i + static_cast<std::size_t>(k));
      RC_ASSERT(slot.job == slots[i].job);
      RC_ASSERT(slot.pass == slots[i].pass);
      RC_ASSERT(slot.chunk == (slot.pass == Kind::forward ? k : chunks - 1 - k));
    }
    if (slots[i].pass == pass) jobs.push_back(slots[i].job);
    i += static_cast<std::size_t>(chunks);
  }
  return jobs;
}

RC_GTEST_PROP(PipelineTemplate, EveryGroupGoesOnceEachWayInOnePieceAndInOneOrder, ()) {
  const PipelineInstance instance = any_instance();
  const TemplateRules rules = any_rules();
  const PipelineSchedule schedule = schedule_of(instance, rules);
  PipelineSimulator simulator(instance.jobs, instance.stages, instance.memory, instance.messages);
  const std::vector<std::int32_t> order = simulator.job_order(simulator.bucket_order(rules), rules);
  std::vector<std::int32_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t j = 0; j < instance.jobs.size(); ++j) RC_ASSERT(sorted.at(j) == static_cast<std::int32_t>(j));
  for (const std::vector<PipelineSlot>& slots : schedule.stages) {
    RC_ASSERT(groups_in_order(instance, slots, Kind::forward) == order);
    RC_ASSERT(groups_in_order(instance, slots, Kind::backward) == order);
  }
}

RC_GTEST_PROP(PipelineTemplate, NoStageHoldsMoreThanItsMemoryOrRunsFurtherAheadThan1F1B, ()) {
  const PipelineInstance instance = any_instance();
  const TemplateRules rules = any_rules();
  const PipelineSchedule schedule = schedule_of(instance, rules);
  for (std::size_t s = 0; s < schedule.stages.size(); ++s) {
    if (instance.memory[s] > 0) RC_ASSERT(most_held(instance, schedule.stages[s], s) <= instance.memory[s]);
    std::int64_t in_flight = 0;
    for (const PipelineSlot& slot : schedule.stages[s]) {
      if (slot.chunk == 0) in_flight += slot.pass == Kind::forward ? 1 : -1;
      if (!rules.eager) RC_ASSERT(in_flight <= static_cast<std::int64_t>(schedule.stages.size() - s));
    }
  }
}

/// When the pass that stands at `i` runs, the next pass of the other direction is not ready, not allowed, or not
/// preferred. Passes take at least a nanosecond here.
bool other_direction_may_not_run(const PipelineInstance& instance, const TemplateRules& rules,
                                 const std::vector<PipelineSlot>& slots, const std::vector<Nanoseconds>& arrivals,
                                 std::size_t stage, std::size_t i) {
  const PipelineSlot& slot = slots[i];
  const bool begins_group =
      slot.chunk == (slot.pass == Kind::forward ? 0 : job_of(instance, slot).chunks - 1);  // else it is bound to go on
  const auto other = std::find_if(slots.begin() + static_cast<std::ptrdiff_t>(i), slots.end(),
                                  [&](const PipelineSlot& later) { return later.pass != slot.pass; });
  if (!begins_group || other == slots.end()) return true;
  if (slot.pass == Kind::backward) {
    Bytes held = 0;
    std::size_t in_flight = 0;
    for (std::size_t k = 0; k < i; ++k) {
      const bool forward = slots[k].pass == Kind::forward;
      held += (forward ? 1 : -1) * job_of(instance, slots[k]).stash[stage];
      if (slots[k].chunk == 0) in_flight += forward ? 1 : std::size_t(-1);
    }
    const PipelineJob& job = job_of(instance, *other);
    const Bytes memory = instance.memory[stage];
    if (memory > 0 && held + job.chunks * job.stash[stage] > memory) return true;
    if (!rules.eager && in_flight + stage >= static_cast<std::size_t>(instance.stages)) return true;
  } else {
    const bool has_gone_forward = std::any_of(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(i),
                                              [&](const PipelineSlot& earlier) { return earlier.job == other->job; });
    if (!has_gone_forward) return true;
  }
  const Nanoseconds free_at = i == 0 ? 0 : end_of(instance, slots[i - 1], stage);
  const Nanoseconds ready = std::max(free_at, arrivals[static_cast<std::size_t>(other - slots.begin())]);
  const bool preferred = (other->pass == Kind::backward) == rules.backward_first;
  return preferred ? ready > slot.start : ready >= slot.start;
}

RC_GTEST_PROP(PipelineTemplate, AFreeStageTakesWhatIsReadyAndTheRulesPrefer, ()) {
  const PipelineInstance instance = any_instance();
  const TemplateRules rules = any_rules();
  const PipelineSchedule schedule = schedule_of(instance, rules);
  const std::optional<DerivedTimes> times = derive_times(instance, schedule.stages);
  RC_ASSERT(times.has_value());
  for (std::size_t s = 0; s < schedule.stages.size(); ++s) {
    for (std::size_t i = 0; i < schedule.stages[s].size(); ++i) {
      RC_ASSERT(other_direction_may_not_run(instance, rules, schedule.stages[s], times->arrival[s], s, i));
    }
  }
}

RC_GTEST_PROP(PipelineTemplate, EqualJobsOnEqualStagesTakeWhatTheClosedFormsSay, ()) {
  const EqualJobs equal = any_equal_jobs(0, false);
  const PipelineInstance& instance = equal.instance;
  const auto makespan = [&](const TemplateRules& rules) {
    return static_cast<double>(schedule_of(instance, rules).makespan);
  };
  RC_ASSERT(makespan({.eager = false}) == one_f_one_b_seconds(equal.seconds, equal.count));
  RC_ASSERT(makespan({.backward_first = false}) == gpipe_seconds(equal.seconds, equal.count));
  for (std::size_t s = 0; s < equal.seconds.size(); ++s) {
    const auto in_flight = std::min(equal.count, static_cast<std::int64_t>(equal.seconds.size() - s));
    const Bytes stash = instance.jobs[0].stash[s];
    RC_ASSERT(most_held(instance, schedule_of(instance, {.eager = false}).stages[s], s) == in_flight * stash);
    RC_ASSERT(most_held(instance, schedule_of(instance, {.backward_first = false}).stages[s], s) ==
              equal.count * stash);
  }
}

RC_GTEST_PROP(PipelineTemplate, EqualJobsTakeWhatEq4SaysWhereTheLastStageIsASlowestOne, ()) {
  const EqualJobs equal = any_equal_jobs(4, true);
  const double closed = eq4_seconds(equal.seconds, equal.count);
  RC_ASSERT(static_cast<double>(schedule_of(equal.instance, {}).makespan) == closed);
  RC_ASSERT(static_cast<double>(schedule_of(equal.instance, {.eager = false}).makespan) == closed);
}

RC_GTEST_PROP(PipelineTemplate, DerivedTimesOfTheStrictOrderAreThoseOf1F1B, ()) {
  const EqualJobs equal = any_equal_jobs(4, false);
  const std::optional<DerivedTimes> times = derive_times(equal.instance, strict_1f1b(equal.instance));
  RC_ASSERT(times.has_value());
  RC_ASSERT(static_cast<double>(times->makespan) == one_f_one_b_seconds(equal.seconds, equal.count));
}

RC_GTEST_PROP(PipelineTemplate, MemoryThatIsNeverUsedUpChangesNothing, ()) {
  PipelineInstance instance = any_instance();
  instance.memory.clear();
  const TemplateRules rules = any_rules();
  const PipelineSchedule free = schedule_of(instance, rules);
  for (std::size_t s = 0; s < free.stages.size(); ++s) {
    instance.memory.push_back(most_held(instance, free.stages[s], s));
  }
  RC_ASSERT(schedule_of(instance, rules).stages == free.stages);
}

TEST(PipelineTemplate, AStageTakesWhatArrivesInTheNanosecondItIsFree) {
  // When the second stage has ended a forward, its backward is ready, and the next forward's message is just there.
  const PipelineInstance instance = even_buckets(2, {10}, {3});
  const auto passes = [&](const TemplateRules& rules) {
    const PipelineSchedule schedule = schedule_of(instance, rules);
    std::string word;
    for (const PipelineSlot& slot : schedule.stages[1]) {
      word += slot.pass == Kind::forward ? 'F' : 'B';
    }
    return word;
  };
  EXPECT_EQ(passes({}), "FBFBFB");
  EXPECT_EQ(passes({.backward_first = false}), "FFFBBB");
}

TEST(PipelineTemplate, TheLastStageRunsAGroupForwardThenBackwardInReverse) {
  PipelineInstance instance = even_buckets(2, {10}, {1});
  instance.jobs[0].chunks = 3;
  const std::vector<PipelineSlot> expected = {{Kind::forward, 0, 0, 10},  {Kind::forward, 0, 1, 20},
                                              {Kind::forward, 0, 2, 30},  {Kind::backward, 0, 2, 40},
                                              {Kind::backward, 0, 1, 50}, {Kind::backward, 0, 0, 60}};
  const PipelineSchedule schedule = schedule_of(instance, {});
  EXPECT_EQ(schedule.stages[1], expected);
  EXPECT_EQ(schedule.makespan, 80);
}

TEST(PipelineTemplate, BucketsGoLongestFirstOrInTurn) {
  const PipelineInstance instance = even_buckets(1, {2, 9, 9}, {2, 1, 2});
  const auto jobs = [&](const TemplateRules& rules) {
    const PipelineSimulator simulator(instance.jobs, 1, {}, {});
    return simulator.job_order(simulator.bucket_order(rules), rules);
  };
  EXPECT_EQ(jobs({}), (std::vector<std::int32_t>{2, 3, 4, 0, 1}));
  EXPECT_EQ(jobs({.consecutive = false}), (std::vector<std::int32_t>{2, 3, 0, 4, 1}));
  EXPECT_EQ(jobs({.descending = false}), (std::vector<std::int32_t>{0, 1, 2, 3, 4}));
}

TEST(PipelineTemplate, TheLongestFirstStageForwardOfABucketDecides) {
  PipelineInstance instance = even_buckets(2, {5, 4}, {1, 2});
  instance.jobs[0].forward[1] = 1;
  instance.jobs[0].backward = {1, 1};
  instance.jobs[1].forward = {3, 90};
  instance.jobs[2].forward = {6, 1};
  const PipelineSimulator simulator(instance.jobs, 2, {}, {});
  EXPECT_EQ(simulator.bucket_order({}), (std::vector<std::int32_t>{1, 0}));
  instance.jobs[2].forward = {4, 90};
  const PipelineSimulator shorter(instance.jobs, 2, {}, {});
  EXPECT_EQ(shorter.bucket_order({}), (std::vector<std::int32_t>{0, 1}));
}

TEST(PipelineTemplate, AGroupThatFitsNoStageIsAnErrorThatNamesStageAndBytes) {
  PipelineInstance instance = even_buckets(3, {10}, {1});
  instance.jobs[0].chunks = 4;
  instance.jobs[0].stash = {1, 1, 50};
  instance.memory = {4, 4, 199};
  try {
    schedule_of(instance, {});
    FAIL() << "accepted";
  } catch (const Error& refused) {
    const std::string message = refused.what();
    EXPECT_NE(message.find("200 bytes on stage 2, which has 199 bytes"), std::string::npos) << message;
  }
  instance.memory = {4, 4, 200};
  EXPECT_EQ(schedule_of(instance, {}).makespan, (4 + 2) * 20);
}

TEST(PipelineTemplate, NoJobsTakeNoTime) {
  EXPECT_EQ(schedule_pipeline({}, 3, {}, {}, {}).makespan, 0);
}

RC_GTEST_PROP(PipelineTemplate, PassesThatTakeNoTimeStillGetThrough, ()) {
  PipelineInstance instance = any_instance();
  for (PipelineJob& job : instance.jobs) {
    if (*rc::gen::arbitrary<bool>()) job.forward.assign(job.forward.size(), 0);
    if (*rc::gen::arbitrary<bool>()) job.backward.assign(job.backward.size(), 0);
  }
  const PipelineSchedule schedule = schedule_of(instance, any_rules());
  const std::optional<DerivedTimes> times = derive_times(instance, schedule.stages);
  RC_ASSERT(times.has_value());
  RC_ASSERT(schedule.makespan == times->makespan);
}

}  // namespace
}  // namespace braid::planner

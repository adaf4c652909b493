#include "planner/window/predict.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "planner/policies/registry.h"
#include "planner/studies.h"
#include "planner/window/program_stream.h"

namespace braid::planner {
namespace {

using namespace testing;

/// What a step takes in slices that are replayed one after another, long after the first.
double mid_stream_seconds(FixedPlan fixed, const Study& study, ClockLatency& latency) {
  fixed.schedule.steps_per_window = kPredictedSteps;
  WindowInput input{study.workload, study.samples};
  input.cycle = kPredictedSteps;
  ProgramStream stream(fixed, input, 0, 8);
  Clocks clocks;
  std::vector<Nanoseconds> ends;
  while (ends.size() < 6) {
    const Program slice = stream.next()->program;
    const PredictedDurations predicted = predict_durations(slice, pass_style(fixed, study.workload), latency);
    ends.push_back(end_of_steps(sim::replay(slice, predicted.durations, &clocks).events));
  }
  return seconds(ends[5] - ends[1]) / (4 * kPredictedSteps);
}

TEST(Predict, AStepOfAStreamTakesWhatItTakesInMidStream) {
  RandomStream random(5);
  const auto below = [&](std::uint64_t count) { return static_cast<std::int64_t>(random.next_below(count)); };
  for (int i = 0; i < 60; ++i) {
    std::vector<StudyTask> tasks(static_cast<std::size_t>(1 + below(7)));
    for (StudyTask& task : tasks) task = {64 << below(3), 8 + below(9), 20, 8, below(2) == 0};
    const Study study = make_study(tasks, 1, 4, 16);
    for (const char* policy :
         {"mlora:batch=off", "mlora:mode=gpipe:batch=off", "mlora:pad_to=none", "muxtune:drain=off"}) {
      const Overrides overrides{.tp = 1, .pp = 1 + below(4), .microbatches = 1 << below(4)};
      const Plan plan = make_plan(study.input(overrides), parse_policy(policy));
      ClockLatency latency(study.cost, study.workload.backbone);
      const double mid_stream = mid_stream_seconds(plan.fixed, study, latency);
      EXPECT_NEAR(plan.predicted.step_seconds / mid_stream, 1, 0.005)
          << policy << ": " << tasks.size() << " tasks on " << *overrides.pp << " stages";
      EXPECT_GE(plan.predicted.bubble_ratio, 0);
    }
  }
}

TEST(Predict, TheFirstStepIsARunOfOneStepFromItsBeginningToItsEnd) {
  RandomStream random(6);
  const auto below = [&](std::uint64_t count) { return static_cast<std::int64_t>(random.next_below(count)); };
  for (int i = 0; i < 20; ++i) {
    std::vector<StudyTask> tasks(static_cast<std::size_t>(1 + below(6)));
    for (StudyTask& task : tasks) task = {64 << below(3), 8 + below(9), 1, 8, below(2) == 0};
    const Study study = make_study(tasks, 1, 4, 16);
    for (const char* policy : {"megatron-pp", "mlora", "mlora:mode=gpipe:batch=off", "muxtune", "muxtune:drain=off"}) {
      const Overrides overrides{.tp = 1, .pp = 1 + below(4), .microbatches = 1 << below(3)};
      const Plan plan = make_plan(study.input(overrides), parse_policy(policy));
      ClockLatency latency(study.cost, study.workload.backbone);
      const WindowInput run{study.workload, study.samples};
      ProgramStream stream(plan.fixed, run, 0, window_count(plan.fixed, run));
      Clocks clocks;
      Nanoseconds end = 0;
      while (const std::optional<Slice> slice = stream.next()) {
        const PredictedDurations predicted =
            predict_durations(slice->program, pass_style(plan.fixed, study.workload), latency);
        end = std::max(end, sim::replay(slice->program, predicted.durations, &clocks).end());
      }
      EXPECT_EQ(plan.predicted.first_step_seconds, seconds(end)) << policy;
      EXPECT_GE(plan.predicted.first_step_seconds * (1 + 1e-9), plan.predicted.step_seconds) << policy;
    }
  }
}

}  // namespace
}  // namespace braid::planner

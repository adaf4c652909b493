#include "planner/window/dispatched.h"

#include <map>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/error.h"
#include "planner/plan/deployment.h"

namespace braid::planner {
namespace {

workload::Workload workload_of(int tasks) {
  workload::Workload workload;
  for (int t = 0; t < tasks; ++t) workload.tasks.emplace_back().name = fmt::format("task{}", t);
  return workload;
}

/// Replicas that hold so many intervals, of so many rows of the shortest, the first of which holds all.
FixedPlan any_fixed(int intervals) {
  FixedPlan fixed;
  LengthDispatch dispatch;
  dispatch.kind = *rc::gen::element(LengthDispatch::Kind::balanced, LengthDispatch::Kind::by_length);
  dispatch.interval = 16;
  dispatch.ranges = *rc::gen::inRange(1, 6);
  for (int r = 0; r < *rc::gen::inRange(1, 5); ++r) {
    const int held = r == 0 ? intervals : *rc::gen::inRange(1, intervals + 1);
    const int stages = *rc::gen::inRange(1, 4);
    ReplicaSpeed speed;
    speed.stages = stages;
    for (int i = 0; i < held; ++i) speed.full.push_back({std::max(1, held / (i + 1)), 0.1 * (i + 1)});
    dispatch.speed_of.push_back(r);
    dispatch.speeds.push_back(speed);
    fixed.deployment.push_back(deploy(6, *rc::gen::element(1, 2), stages, 1).front());
  }
  fixed.dispatch = dispatch;
  return fixed;
}

RC_GTEST_PROP(DispatchedRows, AreEachOfTheStepOnceWhereTheyFit, ()) {
  const int intervals = *rc::gen::inRange(1, 8), tasks = *rc::gen::inRange(1, 4);
  const FixedPlan fixed = any_fixed(intervals);
  const workload::Workload workload = workload_of(tasks);
  std::vector<std::vector<SampleRow>> rows;
  std::map<std::pair<TaskIndex, std::int32_t>, SampleRow> expected;
  for (TaskIndex t = 0; t < tasks; ++t) {
    std::vector<SampleRow>& mine = rows.emplace_back();
    for (int i = 0; i < *rc::gen::inRange(0, 30); ++i) {
      const int tokens = *rc::gen::inRange(2, 16 * intervals + 1);
      mine.push_back({t, 5, i, 100 + i, tokens, tokens, *rc::gen::inRange(0, tokens)});
      expected[{t, i}] = mine.back();
    }
  }
  std::size_t seen = 0;
  for (const DispatchedMicrobatch& one : dispatch_rows(fixed, rows, workload)) {
    RC_ASSERT(!one.segments.empty());
    const ReplicaSpeed& speed = fixed.dispatch->speed(static_cast<std::size_t>(one.replica));
    const std::int32_t length = one.segments.front().computed_tokens();
    RC_ASSERT(length % fixed.dispatch->interval == 0);
    const auto interval = static_cast<std::size_t>(length / fixed.dispatch->interval - 1);
    RC_ASSERT(interval < speed.full.size());
    RC_ASSERT(static_cast<std::int64_t>(one.segments.size()) <= speed.full[interval].rows);
    std::set<TaskIndex> ended;
    TaskIndex task = kNone;
    for (const Segment& segment : one.segments) {
      RC_ASSERT(segment.computed_tokens() == length);
      if (segment.task != task) RC_ASSERT(ended.insert(segment.task).second);
      task = segment.task;
      const auto row = expected.find({segment.task, segment.index});
      RC_ASSERT(row != expected.end());
      RC_ASSERT(segment.sample == row->second.sample);
      RC_ASSERT(segment.global_batch == 5);
      RC_ASSERT(segment.begin == 0);
      RC_ASSERT(segment.end == row->second.tokens);
      RC_ASSERT(segment.scored == row->second.scored);
      expected.erase(row);
      ++seen;
    }
  }
  RC_ASSERT(expected.empty());
}

TEST(DispatchedRows, NameTheSampleThatNobodyHolds) {
  FixedPlan fixed;
  fixed.deployment = deploy(2, 1, 1, 1);
  fixed.dispatch = LengthDispatch{.interval = 16, .speeds = {{{{4, 1.0}, {2, 1.0}}, 1}}, .speed_of = {0}};
  const std::vector<std::vector<SampleRow>> rows = {{{0, 0, 0, 7, 33, 33, 1}}};
  try {
    dispatch_rows(fixed, rows, workload_of(1));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("task 'task0': sample 7 has 33 tokens, more than the 32"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace braid::planner

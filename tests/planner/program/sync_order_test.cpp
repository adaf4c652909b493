#include "planner/program/sync_order.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "planner/streams.h"

namespace braid::planner {
namespace {

using namespace testing;
using Order = testing::Template;

/// The schedule with each replica's microbatches in the order of their tasks.
Schedule in_order_of(const std::vector<TaskIndex>& tasks, const StreamShape& shape) {
  Schedule schedule = schedule_of(shape, Order::gpipe);
  for (std::size_t replica = 0; replica < schedule.orders.size(); ++replica) {
    StageOrder passes;
    for (const TaskIndex task : tasks) {
      for (const Kind kind : {Kind::forward, Kind::backward}) {
        for (const Microbatch& microbatch : schedule.microbatches) {
          if (microbatch.replica == static_cast<std::int32_t>(replica) && microbatch.segments.front().task == task)
            passes.push_back({kind, microbatch.id});
        }
      }
    }
    for (StageOrder& order : schedule.orders[replica]) order = passes;
  }
  return schedule;
}

TEST(SyncOrder, BatchesAreSyncedAsTheyEnd) {
  for (const int replicas : {1, 2}) {
    std::vector<TaskIndex> tasks(4);
    std::iota(tasks.begin(), tasks.end(), 0);
    do {
      const Schedule schedule = in_order_of(tasks, {2, 4, 2, 1, true, replicas});
      std::vector<BatchKey> wanted;
      for (const TaskIndex task : tasks) wanted.push_back({task, 0});
      EXPECT_EQ(sync_order(schedule), wanted);
    } while (std::next_permutation(tasks.begin(), tasks.end()));
  }
}

TEST(SyncOrder, SyncsStandRightBehindTheirLastBackward) {
  const Program program = lower(in_order_of({2, 0, 1}, {1, 3, 2, 1, false, 2}));
  for (const StageProgram& stage : program.stages) {
    TaskIndex ended = kNone;
    for (const Instruction& instruction : stage.instructions) {
      if (instruction.kind == Kind::backward)
        ended = program.microbatch(stage.parts_of(instruction).front().microbatch).segments.front().task;
      if (instruction.kind == Kind::sync_adapter) {
        EXPECT_EQ(instruction.task, ended);
      }
    }
  }
}

}  // namespace
}  // namespace braid::planner

// Programs of several replicas, and streams cut anywhere.

#include <algorithm>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "base/random.h"
#include "planner/edits.h"
#include "planner/program/cut.h"
#include "planner/program/dependency_graph.h"
#include "planner/streams.h"

namespace braid::planner {
namespace {

using namespace planner::testing;
using Order = planner::testing::Template;

TEST(Slices, ReplicasWithoutSamplesOfABatchStillSyncInTurn) {
  // Two tasks or two batches of one sample each; which replica has it makes no difference to the rules.
  for (const int tasks : {1, 2}) {
    for (const int rounds : {1, 2, 3}) {
      for (unsigned has = 0; has < 1U << (tasks * rounds); ++has) {
        const StreamShape shape{2, tasks, 1, rounds, true, 1};
        Schedule schedule = schedule_of(shape, Order::one_forward_one_backward);
        schedule.replicas.push_back(schedule.replicas[0]);
        schedule.orders.emplace_back();
        for (std::size_t i = 0; i < schedule.microbatches.size(); ++i)
          schedule.microbatches[i].replica = static_cast<std::int32_t>(has >> i & 1U);
        for (int replica = 0; replica < 2; ++replica) {
          const auto ids = ids_of(schedule.microbatches, replica);
          schedule.orders[static_cast<std::size_t>(replica)] = {gpipe_order({}), gpipe_order({})};
          for (const MicrobatchId id : ids) {
            for (StageOrder& order : schedule.orders[static_cast<std::size_t>(replica)]) {
              order.push_back({Kind::forward, id});
              order.push_back({Kind::backward, id});
            }
          }
        }
        const Program program = lower(schedule);
        EXPECT_EQ(messages_of(verify(program, context_of(shape))), "") << tasks << " " << rounds << " " << has;
      }
    }
  }
}

TEST(Slices, SyncsComeInAnOrderThatNoReplicaContradicts) {
  // Replica 0 begins task 0's next batch before task 1's has ended there; replica 1 ends task 1's first. Whichever
  // batch has the later microbatch id, task 0's must be synced first.
  for (const bool renumbered : {false, true}) {
    const auto id = [&](MicrobatchId m) { return renumbered && (m == 2 || m == 3) ? 5 - m : m; };
    Schedule schedule = schedule_of({2, 2, 1, 1, false, 2}, Order::gpipe);
    schedule.microbatches.clear();
    const std::vector<std::tuple<MicrobatchId, int, TaskIndex, std::int64_t, int>> all = {
        {0, 0, 0, 0, 0}, {1, 1, 1, 0, 0}, {2, 0, 1, 0, 1}, {3, 1, 0, 0, 1}, {4, 0, 0, 1, 0}, {5, 1, 0, 1, 1}};
    for (const auto& [m, replica, task, batch, index] : all) {
      Segment segment;
      segment.task = task;
      segment.global_batch = batch;
      segment.index = index;
      segment.sample = batch * 1000 + task * 100 + index;
      segment.end = kSampleTokens;
      schedule.microbatches.push_back({id(m), replica, {segment}});
    }
    std::sort(schedule.microbatches.begin(), schedule.microbatches.end(),
              [](const Microbatch& a, const Microbatch& b) { return a.id < b.id; });
    const auto order = [&](std::initializer_list<MicrobatchId> passes) {
      StageOrder slots;
      std::set<MicrobatchId> forward;
      for (const MicrobatchId m : passes)
        slots.push_back({forward.insert(m).second ? Kind::forward : Kind::backward, id(m)});
      return slots;
    };
    schedule.orders = {{order({0, 2, 0, 4, 2, 4}), order({0, 0, 2, 2, 4, 4})},
                       {order({1, 3, 1, 3, 5, 5}), order({1, 1, 3, 3, 5, 5})}};
    VerifyContext context = context_of({2, 2, 1, 2, false, 2});
    EXPECT_EQ(messages_of(verify(lower(schedule), context)), "") << renumbered;
  }
}

TEST(Slices, ACutAnywhereGivesTwoGoodSlices) {
  // Where only some tasks clip, late stages step tasks in another order than early ones.
  for (const int stages : {1, 2, 3}) {
    for (const unsigned clipping : {0U, 1U, 2U, 3U}) {
      const StreamShape shape{stages, 2, 3, 3};
      Schedule schedule = schedule_of(shape, Order::one_forward_one_backward);
      VerifyContext context = context_of(shape);
      for (std::size_t task = 0; task < 2; ++task) {
        const bool clips = (clipping >> task & 1U) != 0;
        schedule.tasks[task].clips = clips;
        context.tasks[task].clips = clips;
      }
      const Program whole = lower(schedule);
      ASSERT_EQ(messages_of(verify(whole, context)), "");
      RandomStream random(clipping + 10 * static_cast<unsigned>(stages));
      for (int trial = 0; trial < 60; ++trial) {
        std::vector<std::size_t> places;
        for (const StageProgram& stage : whole.stages)
          places.push_back(random.next_below(stage.instructions.size() + 1));
        if (trial < 3) places = end_of_round(whole, trial);
        const auto [before, after] = cut(whole, places);
        EXPECT_EQ(messages_of(verify(before, context)), "") << stages << " stages, clipping " << clipping;
        EXPECT_EQ(messages_of(verify(after, context)), "") << stages << " stages, clipping " << clipping;
      }
    }
  }
}

TEST(Slices, MessagesReceivedBeforeACutWaitForTheirConsumersAfterIt) {
  // Stage 1 has received microbatch 0 when the stream is cut, and consumes it after: with the next one sent, two wait.
  const Program whole = lower(schedule_of({2, 1, 2}, Order::gpipe));
  ASSERT_EQ(most_waiting_messages(whole), (std::vector<std::int64_t>{2, 2}));
  const Program second = cut(whole, {2, 1}).second;
  EXPECT_EQ(most_waiting_messages(second)[0], 2);
}

}  // namespace
}  // namespace braid::planner

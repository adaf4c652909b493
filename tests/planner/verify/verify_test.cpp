#include "planner/verify/verify.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "planner/edits.h"
#include "planner/program/cut.h"
#include "planner/program/dependency_graph.h"
#include "planner/streams.h"

namespace braid::planner {
namespace {

using namespace planner::testing;
using Order = planner::testing::Template;
using planner::testing::expect_rejected;

const StreamShape kShape{3, 2, 4, 3, true};

Program good_program() {
  return lower(schedule_of(kShape, Order::one_forward_one_backward));
}

/// Checks that the Program, of shape kShape, breaks `rule` with a message that holds `words`.
void expect_rejected(const Program& program, Rule rule, const std::string& words) {
  expect_rejected(program, rule, words, context_of(kShape));
}

TEST(Verify, AcceptsWhatLoweringMakes) {
  for (const int stages : {1, 2, 5}) {
    for (const int replicas : {1, 2, 3}) {
      for (const bool clips : {false, true}) {
        for (const Order order : {Order::gpipe, Order::one_forward_one_backward}) {
          const StreamShape shape{stages, 2, 5, order == Order::gpipe ? 1 : 3, clips, replicas};
          EXPECT_EQ(messages_of(verify(lower(schedule_of(shape, order)), context_of(shape))), "");
        }
      }
    }
  }
}

TEST(Verify, RejectsADroppedSample) {
  Schedule schedule = schedule_of({1, 1, 4}, Order::gpipe);
  schedule.microbatches.pop_back();
  schedule.orders[0][0] = gpipe_order(ids_of(schedule.microbatches, 0));
  expect_rejected(lower(schedule), Rule::samples, "sample 3 of task 0 batch 0 is dropped", context_of({1, 1, 4}));
}

TEST(Verify, RejectsADoubledSample) {
  Schedule schedule = schedule_of({1, 1, 4}, Order::gpipe);
  schedule.microbatches[3].segments.push_back(schedule.microbatches[0].segments[0]);
  expect_rejected(lower(schedule), Rule::samples, "sample 0 of task 0 batch 0 is not computed exactly once",
                  context_of({1, 1, 4}));
}

TEST(Verify, RejectsASampleDoubledOverReplicas) {
  Schedule schedule = schedule_of({1, 1, 2, 1, false, 2}, Order::gpipe);
  schedule.microbatches[1].segments = schedule.microbatches[0].segments;
  expect_rejected(lower(schedule), Rule::samples, "sample 0 of task 0 batch 0 is doubled",
                  context_of({1, 1, 2, 1, false, 2}));
}

TEST(Verify, RejectsAnotherSampleInASamplesPlace) {
  Program program = good_program();
  program.microbatches[2].segments[0].sample += 1;
  expect_rejected(program, Rule::samples, "is dataset sample");
}

TEST(Verify, RejectsAMicrobatchComputedTwice) {
  Program program = lower(schedule_of({1, 1, 4}, Order::gpipe));
  StageProgram& stage = program.stages[0];
  stage.parts[stage.instructions[find(stage, Kind::forward, 1)].parts.first].microbatch = 0;
  expect_rejected(program, Rule::samples, "microbatch 0 goes forward twice", context_of({1, 1, 4}));
}

TEST(Verify, RejectsSwappedGlobalBatches) {
  Schedule schedule = schedule_of({2, 1, 4, 2}, Order::gpipe);
  for (Microbatch& microbatch : schedule.microbatches) {
    Segment& segment = microbatch.segments[0];
    segment.global_batch = 1 - segment.global_batch;
    segment.sample = segment.global_batch * 1000 + segment.index;
  }
  for (StageOrder& order : schedule.orders[0]) {
    order = gpipe_order({{0, 1, 2, 3}});
    const StageOrder second = gpipe_order({{4, 5, 6, 7}});
    order.insert(order.end(), second.begin(), second.end());
  }
  expect_rejected(lower(schedule), Rule::step_gate, "Forward of task 0 batch 1 comes before the Step of batch 0",
                  context_of({2, 1, 4, 2}));
}

TEST(Verify, RejectsAStepAfterItsGate) {
  Program program = good_program();
  StageProgram& stage = program.stages[1];
  std::vector<std::size_t> places = all_places(stage);
  const std::size_t step = find(stage, Kind::step);
  // Behind the next forward, which is of the task's next global batch: lowering had put the Step just before it.
  std::size_t next = step;
  while (stage.instructions[next].kind != Kind::forward) ++next;
  std::rotate(places.begin() + static_cast<std::ptrdiff_t>(step),
              places.begin() + static_cast<std::ptrdiff_t>(step) + 1,
              places.begin() + static_cast<std::ptrdiff_t>(next) + 1);
  reorder(stage, places);
  expect_rejected(program, Rule::step_gate, "Forward of task 0 batch 1 comes before the Step of batch 0");
}

TEST(Verify, RejectsAStepThatDoesNotWaitForItsNorm) {
  Program program = good_program();
  Instruction& step = program.stages[1].instructions[find(program.stages[1], Kind::step)];
  step.waits.count = 0;
  expect_rejected(program, Rule::step_gate, "Step of task 0 batch 0 does not wait for ReduceNorm");
}

TEST(Verify, RejectsAClippingStepWithoutANorm) {
  VerifyContext context = context_of({2, 1, 4});
  context.tasks[0].clips = true;
  expect_rejected(lower(schedule_of({2, 1, 4}, Order::gpipe)), Rule::step_gate, "clips and there is no ReduceNorm",
                  context);
}

TEST(Verify, RejectsUnsyncedReplicas) {
  Program program = lower(schedule_of({1, 1, 2, 1, false, 2}, Order::gpipe));
  for (StageProgram& stage : program.stages) remove(stage, find(stage, Kind::sync_adapter));
  expect_rejected(program, Rule::step_gate, "has the synced gradients of 0 layers, not of just its 1",
                  context_of({1, 1, 2, 1, false, 2}));
}

TEST(Verify, RejectsABackwardBeforeItsForward) {
  Program program = lower(schedule_of({1, 1, 2}, Order::gpipe));
  StageProgram& stage = program.stages[0];
  std::swap(stage.parts[0], stage.parts[3]);
  std::swap(stage.instructions[0].kind, stage.instructions[3].kind);
  expect_rejected(program, Rule::order, "goes backward before it went forward", context_of({1, 1, 2}));
}

TEST(Verify, RejectsAMissingSend) {
  Program program = good_program();
  StageProgram& stage = program.stages[0];
  remove(stage, find(stage, Kind::send_activation, 11));
  expect_rejected(program, Rule::messages, "channel 0 from stage 0 to stage 1");
  expect_rejected(program, Rule::messages, "has no send");
}

TEST(Verify, RejectsMessagesThatOvertakeEachOther) {
  Program program = good_program();
  StageProgram& stage = program.stages[1];
  std::swap(stage.instructions[find(stage, Kind::recv_activation, 0)].microbatch,
            stage.instructions[find(stage, Kind::recv_activation, 1)].microbatch);
  expect_rejected(program, Rule::messages, "microbatch 1 is received where 0 was sent");
}

TEST(Verify, RejectsAForwardThatDoesNotWaitForItsInput) {
  Program program = good_program();
  StageProgram& stage = program.stages[1];
  stage.instructions[find(stage, Kind::forward)].waits.count = 0;
  expect_rejected(program, Rule::messages, "does not wait for RecvActivation of microbatch 0");
}

TEST(Verify, RejectsACyclicWait) {
  // Stage 0 takes microbatch 0 back before it sends microbatch 1; stage 1 gives it back after it has had microbatch 1.
  Schedule schedule = schedule_of({2, 1, 2}, Order::gpipe);
  schedule.orders[0][0] = {{Kind::forward, 0}, {Kind::backward, 0}, {Kind::forward, 1}, {Kind::backward, 1}};
  expect_rejected(lower(schedule), Rule::deadlock, "wait for each other in a circle", context_of({2, 1, 2}));
}

TEST(Verify, RejectsCollectivesCrossedBetweenRanks) {
  Program program = good_program();
  StageProgram& stage = program.stages[2];
  Instruction& first = stage.instructions[find(stage, Kind::reduce_norm, 0)];
  Instruction& second = stage.instructions[find(stage, Kind::reduce_norm, 1)];
  std::swap(first.task, second.task);
  std::swap(first.global_batch, second.global_batch);
  expect_rejected(program, Rule::groups,
                  "collectives cross, stage 2 issues ReduceNorm of task 1 batch 0 where stage 0 issues ReduceNorm of "
                  "task 0 batch 0");
}

TEST(Verify, RejectsAMeetingThatSomeMemberMisses) {
  Program program = good_program();
  StageProgram& stage = program.stages[1];
  remove(stage, find(stage, Kind::reduce_norm, 5));
  expect_rejected(program, Rule::groups, "stage 1 comes to 5 meetings, stage 0 to 6");
}

TEST(Verify, RejectsTooMuchMemory) {
  const Program program = good_program();
  VerifyContext context = context_of(kShape);
  const std::vector<StageMemory> memories = walk_memory(program, context.memory);
  Bytes most = 0;
  for (const StageMemory& memory : memories) most = std::max(most, memory.peak());
  context.capacity = most;
  EXPECT_EQ(messages_of(verify(program, context)), "");
  context.capacity = most - 1;
  expect_rejected(program, Rule::memory, "1 bytes more than a rank has", context);
}

TEST(Verify, RejectsABoundaryThatForgetsWhatIsUnderWay) {
  const Program whole = lower(schedule_of({4, 3, 3, 4, true}, Order::one_forward_one_backward));
  const VerifyContext context = context_of({4, 3, 3, 4, true});
  auto [first, second] = cut(whole, end_of_round(whole, 1));
  ASSERT_EQ(messages_of(verify(first, context)), "");
  ASSERT_EQ(messages_of(verify(second, context)), "");
  Program forgetful = first;
  forgetful.after.stages[0].live.clear();
  expect_rejected(forgetful, Rule::boundary, "microbatches are under way at the end", context);
  forgetful = second;
  bool erased = false;
  for (StageBoundary& stage : forgetful.before.stages) {
    if (stage.gradients.empty()) continue;
    stage.gradients.clear();
    erased = true;
    break;
  }
  ASSERT_TRUE(erased);
  expect_rejected(forgetful, Rule::samples, "is dropped", context);
  forgetful = second;
  for (auto& messages : forgetful.before.messages) messages.clear();
  expect_rejected(forgetful, Rule::messages, "has no send", context);
}

TEST(MostWaitingMessages, AreTheForwardsThatAStageRunsAheadOfTheNext) {
  // In 1F1B stage s sends up to S - s activations before it must wait for a gradient, which the next stage gives only
  // after it has consumed that microbatch's activation.
  const int stages = 4;
  const Program program = lower(schedule_of({stages, 1, 12}, Order::one_forward_one_backward));
  const std::vector<std::int64_t> most = most_waiting_messages(program);
  for (std::size_t c = 0; c < program.channels.size(); ++c) {
    const Channel channel = program.channels[c];
    if (channel.to < channel.from) continue;
    EXPECT_EQ(most[c], stages - channel.from) << "channel " << c;
  }
}

TEST(MostWaitingMessages, AreAllOfThemInGpipe) {
  const Program program = lower(schedule_of({2, 1, 9}, Order::gpipe));
  EXPECT_EQ(most_waiting_messages(program), (std::vector<std::int64_t>{9, 9}));
}

}  // namespace
}  // namespace braid::planner

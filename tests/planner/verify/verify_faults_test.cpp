// Faults that keep a Program's shape and break what it means; and Programs that name what is not there.

#include <functional>

#include <gtest/gtest.h>

#include "planner/edits.h"
#include "planner/program/cut.h"
#include "planner/streams.h"

namespace braid::planner {
namespace {

using namespace planner::testing;
using Order = planner::testing::Template;

const StreamShape kPipeline{3, 2, 4, 3, true};
const StreamShape kReplicas{2, 1, 3, 2, true, 2};

Program pipeline() {
  return lower(schedule_of(kPipeline, Order::one_forward_one_backward));
}

Program replicas() {
  return lower(schedule_of(kReplicas, Order::one_forward_one_backward));
}

Instruction& first(Program& program, std::size_t stage, Kind kind, int occurrence = 0) {
  StageProgram& list = program.stages[stage];
  return list.instructions[testing::find(list, kind, occurrence)];
}

TEST(Faults, AnInstructionInAnotherStreamIsSeen) {
  for (const Kind kind : {Kind::forward, Kind::backward, Kind::step, Kind::recv_activation, Kind::send_gradient}) {
    Program program = pipeline();
    Instruction& instruction = first(program, 1, kind);
    instruction.stream = instruction.stream == Stream::compute ? Stream::sync : Stream::compute;
    expect_rejected(program, Rule::ids, "stands in the", context_of(kPipeline));
  }
}

TEST(Faults, AMessageBesideTheOthersThatBlockIsSeen) {
  StreamShape shape = kPipeline;
  shape.blocking_messages = true;
  for (const Kind kind : {Kind::recv_gradient, Kind::send_activation}) {
    Program program = lower(schedule_of(shape, Order::one_forward_one_backward));
    first(program, 1, kind).stream = is_send(kind) ? Stream::send : Stream::recv;
    expect_rejected(program, Rule::ids, "stands in the", context_of(shape));
  }
}

TEST(Faults, ASyncThatDoesNotWaitForTheLastBackwardIsSeen) {
  Program program = replicas();
  first(program, 0, Kind::sync_adapter).waits.count = 0;
  expect_rejected(program, Rule::step_gate, "SyncAdapter of task 0 batch 0 does not wait for its last Backward",
                  context_of(kReplicas));
  program = pipeline();
  first(program, 0, Kind::reduce_norm).waits.count = 0;
  expect_rejected(program, Rule::step_gate, "ReduceNorm of task 0 batch 0 does not wait for its last Backward",
                  context_of(kPipeline));
}

TEST(Faults, ANormBeforeItsSyncIsSeen) {
  Program program = replicas();
  for (StageProgram& stage : program.stages) {
    std::vector<std::size_t> places = all_places(stage);
    std::swap(places[testing::find(stage, Kind::sync_adapter)], places[testing::find(stage, Kind::reduce_norm)]);
    reorder(stage, places);
  }
  expect_rejected(program, Rule::step_gate, "SyncAdapter of task 0 batch 0 comes after its ReduceNorm",
                  context_of(kReplicas));
}

TEST(Faults, ASyncOfOtherLayersOrOtherMembersIsSeen) {
  Program program = replicas();
  for (StageProgram& stage : program.stages) {
    for (Instruction& instruction : stage.instructions) {
      if (instruction.kind == Kind::sync_adapter) instruction.layers = {7, 8};
    }
  }
  expect_rejected(program, Rule::groups, "is not all that must meet", context_of(kReplicas));
  program = replicas();
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    program.groups.push_back({{static_cast<StageIndex>(s)}});
    for (Instruction& instruction : program.stages[s].instructions) {
      if (is_grouped(instruction.kind)) instruction.group = static_cast<GroupIndex>(program.groups.size() - 1);
    }
  }
  expect_rejected(program, Rule::groups, "is not all that must meet", context_of(kReplicas));
  program = replicas();
  program.groups[0].stages.push_back(program.groups[0].stages[0]);
  expect_rejected(program, Rule::ids, "twice", context_of(kReplicas));
}

TEST(Faults, ASyncOfUnlikeSizeIsSeen) {
  Program program = replicas();
  first(program, 0, Kind::sync_adapter).bytes += 4;
  expect_rejected(program, Rule::groups, "collectives cross", context_of(kReplicas));
}

TEST(Faults, ASendOfAnotherMicrobatchsResultIsSeen) {
  Program program = pipeline();
  std::swap(first(program, 0, Kind::send_activation, 0).microbatch,
            first(program, 0, Kind::send_activation, 1).microbatch);
  std::swap(first(program, 1, Kind::recv_activation, 0).microbatch,
            first(program, 1, Kind::recv_activation, 1).microbatch);
  expect_rejected(program, Rule::messages, "SendActivation 1 does not wait for the Forward of microbatch 1",
                  context_of(kPipeline));
  program = pipeline();
  first(program, 0, Kind::send_activation).waits.count = 0;
  expect_rejected(program, Rule::messages, "SendActivation 1 does not wait for the Forward of microbatch 0",
                  context_of(kPipeline));
  program = pipeline();
  first(program, 1, Kind::send_gradient).kind = Kind::send_activation;
  expect_rejected(program, Rule::ids, "goes the wrong way", context_of(kPipeline));
}

TEST(Faults, AMessageOfAnotherSizeIsSeen) {
  Program program = pipeline();
  for (StageProgram& stage : program.stages) {
    for (Instruction& instruction : stage.instructions) {
      if (is_send(instruction.kind)) instruction.bytes = 0;
    }
  }
  expect_rejected(program, Rule::messages, "carries 0 bytes for 16 tokens", context_of(kPipeline));
}

TEST(Faults, SubgraphsLeftOutAreSeen) {
  Program program = lower(schedule_of({1, 1, 2}, Order::gpipe));
  program.stages[0].subgraphs = 3;
  for (Part& part : program.stages[0].parts) part.last_subgraph = 3;
  EXPECT_EQ(messages_of(verify(program, context_of({1, 1, 2}))), "");
  program.stages[0].parts[0].last_subgraph = 2;
  expect_rejected(program, Rule::order, "Forward of microbatch 0 stops at subgraph 2 of 3", context_of({1, 1, 2}));
  program.stages[0].parts[0] = {0, 0, 0};
  expect_rejected(program, Rule::ids, "computes subgraphs [0, 0) of 3", context_of({1, 1, 2}));
}

/// One stage; sample 0 in two chunks, sample 1 whole.
Schedule chunked() {
  Schedule schedule = schedule_of({1, 1, 2}, Order::gpipe);
  Microbatch chunk = schedule.microbatches[0];
  chunk.segments[0].end = 8;
  Microbatch rest = schedule.microbatches[0];
  rest.id = 1;
  rest.segments[0].begin = 8;
  schedule.microbatches[1].id = 2;
  schedule.microbatches = {chunk, rest, schedule.microbatches[1]};
  return schedule;
}

TEST(Faults, ChunksOfASampleGoTogether) {
  Schedule schedule = chunked();
  schedule.orders[0][0] = {{Kind::forward, 0},  {Kind::forward, 1},  {Kind::forward, 2},
                           {Kind::backward, 2}, {Kind::backward, 1}, {Kind::backward, 0}};
  EXPECT_EQ(messages_of(verify(lower(schedule), context_of({1, 1, 2}))), "");
  std::swap(schedule.orders[0][0][1], schedule.orders[0][0][2]);
  expect_rejected(lower(schedule), Rule::order, "apart from the other chunks of its samples", context_of({1, 1, 2}));
  schedule.orders[0][0] = {{Kind::forward, 0},  {Kind::forward, 1}, {Kind::backward, 0},
                           {Kind::backward, 1}, {Kind::forward, 2}, {Kind::backward, 2}};
  expect_rejected(lower(schedule), Rule::order, "goes backward out of turn", context_of({1, 1, 2}));
}

TEST(Faults, ACutBetweenChunksKeepsTheirKeysAndGradients) {
  Schedule schedule = chunked();
  schedule.orders[0][0] = {{Kind::forward, 0},  {Kind::forward, 1}, {Kind::backward, 1},
                           {Kind::backward, 0}, {Kind::forward, 2}, {Kind::backward, 2}};
  const Program whole = lower(schedule);
  const VerifyContext context = context_of({1, 1, 2});
  for (std::size_t place = 0; place <= whole.stages[0].instructions.size(); ++place) {
    auto [before, after] = cut(whole, {place});
    EXPECT_EQ(messages_of(verify(before, context)), "") << place;
    EXPECT_EQ(messages_of(verify(after, context)), "") << place;
  }
  auto [before, after] = cut(whole, {3});
  const StageBoundary& boundary = before.after.stages[0];
  EXPECT_EQ(boundary.keys, (std::vector<StoredKeys>{{0, 0, 0, 8}}));
  ASSERT_EQ(boundary.gradients.size(), 1U);
  EXPECT_EQ(boundary.gradients[0].samples, (std::vector<SamplePiece>{{0, 8, 16}}));
  Program forgetful = cut(whole, {2}).first;
  forgetful.after.stages[0].keys.clear();
  expect_rejected(forgetful, Rule::boundary, "forgets the keys of 1 samples", context);
}

TEST(Faults, AnAwaitedInstructionIsWhatTheBoundarySays) {
  const Program whole = pipeline();
  const VerifyContext context = context_of(kPipeline);
  int tried = 0;
  for (std::size_t place = 1; place + 1 < whole.stages[1].instructions.size(); ++place) {
    auto [before, after] = cut(whole, {0, place, 0});
    ASSERT_EQ(messages_of(verify(before, context)), "") << place;
    if (before.after.stages[1].awaited.empty()) continue;
    ++tried;
    const Kind other = before.after.stages[1].awaited[0].kind == Kind::reduce_norm ? Kind::forward : Kind::reduce_norm;
    before.after.stages[1].awaited[0].kind = other;
    expect_rejected(before, Rule::boundary, "which is not what it says", context);
    after.before.stages[1].awaited[0].kind = other;
    after.before.stages[1].awaited[0].task = kNone;
    EXPECT_NE(messages_of(verify(after, context)), "") << place;
  }
  EXPECT_GT(tried, 20);
}

TEST(Faults, WhatIsNotThereIsNamedAndNotRead) {
  const VerifyContext context = context_of(kPipeline);
  const std::vector<std::function<void(Program&)>> faults = {
      [](Program& program) { program.microbatches[0].segments[0].task = 9; },
      [](Program& program) { program.microbatches[0].segments[0].task = -1; },
      [](Program& program) { program.microbatches[0].segments[0].end = 0; },
      [](Program& program) { program.groups[0].stages[0] = 77; },
      [](Program& program) { program.channels[0].to = 9; },
      [](Program& program) { program.channels[0].to = 2; },
      [](Program& program) { program.before.stages.pop_back(); },
      [](Program& program) { program.after.messages.clear(); },
      [](Program& program) { program.before.stages[0].next_batch.pop_back(); },
      [](Program& program) { program.before.stages[0].live = {12345}; },
      [](Program& program) { program.stages[0].instructions[0].parts.first = 1 << 30; },
      [](Program& program) { program.stages[0].instructions[1].waits.count = 1U << 31U; },
      [](Program& program) { first(program, 0, Kind::step).task = 2; },
      [](Program& program) { first(program, 0, Kind::reduce_norm).group = -1; },
      [](Program& program) { first(program, 0, Kind::send_activation).channel = 99; },
      [](Program& program) { first(program, 0, Kind::send_activation).microbatch = 999; },
  };
  for (std::size_t i = 0; i < faults.size(); ++i) {
    Program program = pipeline();
    faults[i](program);
    const std::vector<Violation> violations = verify(program, context);
    ASSERT_FALSE(violations.empty()) << "fault " << i;
    EXPECT_EQ(violations[0].rule, Rule::ids) << "fault " << i << ": " << violations[0].message;
  }
}

}  // namespace
}  // namespace braid::planner

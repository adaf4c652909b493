#include "planner/program/memory_walk.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "planner/program/dependency_graph.h"
#include "planner/program/load.h"
#include "planner/streams.h"

namespace braid::planner {
namespace {

using namespace testing;

/// What one microbatch of a stream takes on a stage; all are alike.
struct OneMicrobatch {
  OneMicrobatch(const Program& program, std::size_t stage, const MemoryContext& context) {
    const costmodel::StageShape shape = shape_of(program.stages[stage]);
    const costmodel::MicrobatchLoad load = load_of(program.microbatches.front(), context.adapters);
    stash = costmodel::stash_bytes(context.backbone, shape, load, costmodel::cpu_storage());
    forward =
        costmodel::workspace_bytes(context.backbone, shape, load, costmodel::Pass::forward, costmodel::cpu_storage());
    backward =
        costmodel::workspace_bytes(context.backbone, shape, load, costmodel::Pass::backward, costmodel::cpu_storage());
  }
  Bytes stash = 0;
  Bytes forward = 0;
  Bytes backward = 0;
};

TEST(MemoryWalk, GPipeStashesAllMicrobatchesAndOneForwardOneBackwardAsManyAsStagesFollow) {
  for (const int stages : {1, 2, 4}) {
    for (const int microbatches : {1, 3, 8}) {
      const StreamShape shape{stages, 1, microbatches, 1};
      const MemoryContext context = context_of(shape).memory;
      for (const Template order : {Template::gpipe, Template::one_forward_one_backward}) {
        const Program program = lower(schedule_of(shape, order));
        const std::vector<StageMemory> memories = walk_memory(program, context);
        for (int s = 0; s < stages; ++s) {
          const OneMicrobatch one(program, static_cast<std::size_t>(s), context);
          const int live = order == Template::gpipe ? microbatches : std::min(microbatches, stages - s);
          const StageMemory& memory = memories[static_cast<std::size_t>(s)];
          EXPECT_GE(memory.activations, live * one.stash + std::min(one.forward, one.backward));
          EXPECT_LE(memory.activations, live * one.stash + std::max(one.forward, one.backward));
        }
      }
    }
  }
}

TEST(MemoryWalk, MessagesAreHeldWhereStagesMeetAndAtMostTheOnesThatWaitAndOneOut) {
  const StreamShape shape{3, 2, 4, 2};
  const Program program = lower(schedule_of(shape, Template::one_forward_one_backward));
  const std::vector<std::int64_t> waiting = most_waiting_messages(program);
  const std::vector<StageMemory> memories = walk_memory(program, context_of(shape).memory);
  const Bytes message = program.microbatches.front().computed_tokens() * 4;
  for (std::size_t s = 0; s < memories.size(); ++s) {
    Bytes most = 0;
    for (std::size_t c = 0; c < program.channels.size(); ++c) {
      if (static_cast<std::size_t>(program.channels[c].to) == s) most += waiting[c] * message;
      if (static_cast<std::size_t>(program.channels[c].from) == s) most += message;
    }
    EXPECT_GT(memories[s].messages, 0);
    EXPECT_LE(memories[s].messages, most);
  }
  const StreamShape alone{1, 2, 4, 2};
  EXPECT_EQ(walk_memory(lower(schedule_of(alone, Template::gpipe)), context_of(alone).memory)[0].messages, 0);
}

TEST(MemoryWalk, ThePeakIsTheFullestInstruction) {
  for (const Template order : {Template::gpipe, Template::one_forward_one_backward}) {
    const StreamShape shape{3, 2, 3, 2};
    for (const StageMemory& memory : walk_memory(lower(schedule_of(shape, order)), context_of(shape).memory)) {
      EXPECT_EQ(*std::max_element(memory.after.begin(), memory.after.end()), memory.peak());
    }
  }
}

TEST(MemoryWalk, AfterADrainedWindowNothingButAMessageOutIsLeft) {
  const StreamShape shape{2, 1, 4, 1};
  for (const StageMemory& memory :
       walk_memory(lower(schedule_of(shape, Template::one_forward_one_backward)), context_of(shape).memory)) {
    EXPECT_GE(memory.after.back(), memory.fixed());
    EXPECT_LE(memory.after.back(), memory.fixed() + 4 * kSampleTokens);
  }
}

}  // namespace
}  // namespace braid::planner

// Interleaved stages: 1F1B over several model chunks a stage (Narayanan et al. 2021).
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/policies/registry.h"
#include "planner/program/memory_walk.h"
#include "planner/streams.h"
#include "planner/studies.h"
#include "planner/window/program_stream.h"
#include "planner/window/window.h"
#include "sim/replay.h"
#include "support.h"

namespace braid::planner {
namespace {

using namespace testing;

Schedule interleaved(const StreamShape& shape, int model_chunks) {
  Schedule schedule = schedule_of(shape, Template::gpipe);
  for (std::size_t r = 0; r < schedule.replicas.size(); ++r) {
    const std::int64_t layers = shape.stages * model_chunks;
    schedule.replicas[r] = deploy(layers, 1, shape.stages, 1, model_chunks).front();
    const std::vector<MicrobatchId> ids = ids_of(schedule.microbatches, static_cast<int>(r));
    for (int s = 0; s < shape.stages; ++s) {
      // Each global batch drains.
      StageOrder& order = schedule.orders[r][static_cast<std::size_t>(s)];
      order.clear();
      const auto batch = static_cast<std::size_t>(shape.microbatches);
      for (std::size_t first = 0; first < ids.size(); first += batch) {
        const StageOrder part = interleaved_order(std::span(ids).subspan(first, batch), s, shape.stages, model_chunks);
        order.insert(order.end(), part.begin(), part.end());
      }
    }
  }
  return schedule;
}

TEST(Interleaved, KeepsAllRulesForAnyNumberOfMicrobatches) {
  for (const int stages : {2, 3, 4}) {
    for (const int chunks : {2, 3, 4}) {
      for (int microbatches = 1; microbatches <= 2 * stages + 1; ++microbatches) {
        for (const int replicas : {1, 2}) {
          const StreamShape shape{stages, 2, microbatches, 2, true, replicas};
          const std::vector<Violation> violations = verify(lower(interleaved(shape, chunks)), context_of(shape));
          ASSERT_EQ(messages_of(violations), "")
              << stages << " stages of " << chunks << " chunks, " << microbatches << " microbatches";
        }
      }
    }
  }
}

/// The bubble is (S − 1) passes of a model chunk each way: v times less than without (§2.2).
TEST(Interleaved, TakesWhatTheClosedFormSays) {
  for (const int stages : {2, 4, 8}) {
    for (const int chunks : {1, 2, 4}) {
      for (const int groups : {1, 2, 3}) {
        const int microbatches = groups * stages;
        const Nanoseconds forward = 10, backward = 20;
        Costs costs;
        costs.forward.assign(static_cast<std::size_t>(stages), forward);
        costs.backward.assign(static_cast<std::size_t>(stages), backward);
        const Program program = lower(interleaved({stages, 1, microbatches, 1}, chunks));
        EXPECT_EQ(sim::replay(program, durations_of(program, costs)).end(),
                  (microbatches * chunks + stages - 1) * (forward + backward))
            << stages << " " << chunks << " " << microbatches;
      }
    }
  }
}

TEST(Interleaved, AStageHoldsTheModelChunksThatItRunsAhead) {
  const StreamShape shape{4, 1, 8, 1};
  const VerifyContext context = context_of(shape);
  const Program program = lower(interleaved(shape, 2));
  const std::vector<StageMemory> memories = walk_memory(program, context.memory);
  const costmodel::MicrobatchLoad load = load_of(program.microbatches[0], context.memory.adapters);
  const Bytes chunk =
      costmodel::stash_bytes(context.memory.backbone, {1, false, false, 1}, load, costmodel::cpu_storage());
  for (std::size_t s = 1; s < 3; ++s) {
    const Bytes scratch = std::max(costmodel::workspace_bytes(context.memory.backbone, {1, false, false, 1}, load,
                                                              costmodel::Pass::forward, costmodel::cpu_storage()),
                                   costmodel::workspace_bytes(context.memory.backbone, {1, false, false, 1}, load,
                                                              costmodel::Pass::backward, costmodel::cpu_storage()));
    const auto ahead = static_cast<Bytes>(2 * (4 - s - 1) + 4 + 1);
    EXPECT_NEAR(static_cast<double>(memories[s].activations), static_cast<double>(ahead * chunk + scratch),
                static_cast<double>(scratch));
    EXPECT_GE(memories[s].activations, ahead * chunk);
  }
}

TEST(Interleaved, VerifySeesWhatGoesToAnotherModelChunk) {
  const StreamShape shape{2, 1, 4, 1};
  const VerifyContext context = context_of(shape);
  const Program good = lower(interleaved(shape, 2));
  ASSERT_EQ(messages_of(verify(good, context)), "");
  int rejected = 0;
  for (std::size_t s = 0; s < good.stages.size(); ++s) {
    for (std::size_t i = 0; i < good.stages[s].instructions.size(); ++i) {
      const Instruction& instruction = good.stages[s].instructions[i];
      Program bad = good;
      if (is_send(instruction.kind) || is_recv(instruction.kind)) {
        bad.stages[s].instructions[i].subgraph ^= 1;
      } else if (instruction.parts.count > 0) {
        Part& part = bad.stages[s].parts[instruction.parts.first];
        part.first_subgraph ^= 1;
        part.last_subgraph = part.first_subgraph + 1;
      } else {
        continue;
      }
      EXPECT_NE(messages_of(verify(bad, context)), "") << "stage " << s << " instruction " << i;
      ++rejected;
    }
  }
  EXPECT_GT(rejected, 50);
}

TEST(Interleaved, NemoTakesItWhereFewMicrobatchesLeaveStagesIdle) {
  const Study study = make_study({{128, 8}}, 1, 4);
  const PolicyChoice nemo = parse_policy("nemo"), plain = parse_policy("megatron-pp");
  const Overrides stages{.tp = 1, .pp = 4, .microbatches = 4};
  const Plan plan = make_plan(study.input(stages), nemo);
  EXPECT_EQ(plan.fixed.deployment.front().model_chunks, 2);
  EXPECT_EQ(plan.fixed.schedule.pipeline, PipelineTemplate::interleaved);
  const Plan without = make_plan(study.input(stages), plain);
  EXPECT_LT(plan.predicted.step_seconds, without.predicted.step_seconds);
  EXPECT_GT(plan.predicted.peak_memory_bytes[0], without.predicted.peak_memory_bytes[0]);
  EXPECT_LE(plan.lower_bound.step_seconds, plan.predicted.step_seconds);
  const WindowInput input{study.workload, study.samples};
  const VerifyContext rules = verify_context(plan.fixed, input, plan.profile.memory_bytes);
  for (std::int64_t window = 0; window < window_count(plan.fixed, input); ++window)
    EXPECT_EQ(messages_of(verify(window_program(plan.fixed, input, window), rules)), "");
}

}  // namespace
}  // namespace braid::planner

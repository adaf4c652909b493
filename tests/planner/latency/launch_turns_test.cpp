#include "planner/latency/launch_turns.h"

#include <set>

#include <gtest/gtest.h>

#include "costmodel/profile/derive.h"
#include "planner/plan/deployment.h"
#include "planner/policies/common_options.h"
#include "planner/program/load.h"
#include "planner/window/program_stream.h"

namespace braid::planner {
namespace {

/// Two buckets of two hTasks on a stage of `tp` ranks.
struct TurnsStudy {
  explicit TurnsStudy(std::int64_t tp) {
    workload.backbone = costmodel::builtin_backbone("tinyllama-1.1b");
    workload.backbone.layers = 3;
    std::vector<std::vector<workload::SampleSize>> sizes;
    for (int t = 0; t < 4; ++t) {
      workload::Task& task = workload.tasks.emplace_back();
      task.name = fmt::format("t{}", t);
      task.max_length = 64 * (t + 1);
      task.global_batch_size = 4;
      task.steps = 2;
      sizes.emplace_back(8, workload::SampleSize{40 * (t + 1), 5});
    }
    samples.emplace(workload.tasks, std::move(sizes));
    fixed.deployment = deploy(3, tp, 1, 1);
    one_task_per_htask(4, fixed);
    fixed.schedule.pipeline = PipelineTemplate::structured;
    fixed.buckets = {{0, 3}, {1, 2}};
    fixed.schedule.order = {{{false, 1, 0}, {false, 0, 0}, {true, 1, 0}, {true, 0, 0}}};
    fixed.batching.microbatches = 1;
    profile = costmodel::analytic_profile("a40", costmodel::DataType::bf16);
    profile.interconnect.intra_node = {"wire", 2e10, 1e-6};
  }

  Program program() const { return window_program(fixed, {workload, *samples}, 0); }
  StageTurns turns(const Program& program) const {
    return LaunchTurns(profile, workload.backbone, pass_style(fixed, workload)).of(program, 0);
  }

  workload::Workload workload;
  std::optional<workload::SampleIndex> samples;
  FixedPlan fixed;
  costmodel::Profile profile;
};

TEST(LaunchTurns, EachPartComesOnceForEveryCollectiveAndOnceForItsEnd) {
  const TurnsStudy study(2);
  const Program program = study.program();
  const StageProgram& stage = program.stages.front();
  const StageTurns turns = study.turns(program);
  std::size_t of_several = 0;
  bool interleaves = false;
  for (std::size_t place = 0; place < stage.instructions.size(); ++place) {
    const Instruction& instruction = stage.instructions[place];
    const std::span<const Part> parts = stage.parts_of(instruction);
    const auto found = turns.find(stage.first_id + static_cast<InstructionId>(place));
    ASSERT_EQ(found != turns.end(), parts.size() > 1);
    if (found == turns.end()) continue;
    ++of_several;
    for (std::size_t part = 0; part < parts.size(); ++part) {
      const costmodel::MicrobatchLoad load =
          load_of(program.microbatch(parts[part].microbatch), adapters_of(study.workload));
      double collectives = 0;
      for (const costmodel::OperatorCall& call : costmodel::stage_collectives(
               study.workload.backbone, shape_of(stage, parts[part]), load,
               instruction.kind == Kind::forward ? costmodel::Pass::forward : costmodel::Pass::backward,
               costmodel::CostModel(study.profile).storage()))
        collectives += call.count;
      EXPECT_EQ(std::ranges::count(found->second, static_cast<std::int32_t>(part)), collectives + 1);
    }
    const auto half = found->second.begin() + std::ssize(found->second) / 2;
    interleaves = interleaves || std::set(found->second.begin(), half).size() > 1;
  }
  EXPECT_EQ(of_several, turns.size());
  EXPECT_GT(of_several, 0U);
  EXPECT_TRUE(interleaves);
  EXPECT_EQ(study.turns(program), turns);
}

TEST(LaunchTurns, OneRankNeedsNone) {
  const TurnsStudy study(1);
  EXPECT_TRUE(study.turns(study.program()).empty());
}

}  // namespace
}  // namespace braid::planner

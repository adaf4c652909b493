#include <map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "costmodel/profile/derive.h"
#include "exec/example/random_backbone.h"
#include "exec/training.h"
#include "planner/latency/launch_turns.h"
#include "planner/program/dependency_graph.h"
#include "planner/window/program_stream.h"
#include "planner/window/unit_stream.h"

/// Whatever the plan, what is learned is what one rank learns that takes one task after another, but for the order of
/// sums.
namespace braid::exec {
namespace {

constexpr double kTolerance = 1e-5;

/// Six layers, so that stages may hold several runs, and tasks of every kind: adapters on all linear layers or a few,
/// with dropout and without, clipped and not, of short and long samples.
struct SixLayers : TrainerStudy {
  SixLayers() {
    costmodel::BackboneShape shape;
    shape.layers = 6, shape.hidden = 32, shape.intermediate = 44, shape.vocabulary = 151;
    shape.heads = 4, shape.kv_heads = 2, shape.head_dim = 8, shape.max_position = 256;
    write_random_backbone(folder.path(), shape, 7);
    workload.backbone_folder = folder.path();
    workload.backbone = costmodel::read_backbone(folder.path());
    workload.tasks[0].adapter.targets = costmodel::kSeparateModules;
    workload.tasks[1].adapter.targets = {false, false, false, true, false, false, true};
    workload.tasks[3].adapter.targets = costmodel::kSeparateModules;
  }

  TestFolder folder;
};

const SixLayers& study() {
  static const SixLayers made;
  return made;
}

planner::FixedPlan one_rank() {
  planner::FixedPlan fixed = apart(PipelineTemplate::one_forward_one_backward, 1);
  fixed.deployment = {{1, {{0, 6}}}};
  return fixed;
}

const Trained& alone() {
  static const Trained trained = train_on(study(), one_rank());
  return trained;
}

std::vector<planner::ReplicaShape> deployment_of(
    std::initializer_list<std::pair<std::int32_t, std::int64_t>> replicas) {
  std::vector<planner::ReplicaShape> deployment;
  for (const auto& [tp, pp] : replicas) deployment.push_back(planner::deploy(6, tp, pp, 1).front());
  return deployment;
}

TEST(Deployments, ShardsAndReplicasLearnWhatOneRankLearns) {
  planner::FixedPlan fixed = one_rank();
  const std::vector<std::pair<std::string, std::vector<planner::ReplicaShape>>> deployments = {
      {"tp 2", deployment_of({{2, 1}})},
      {"tp 4", deployment_of({{4, 1}})},
      {"tp 2, pp 2", deployment_of({{2, 2}})},
      {"pp 3", deployment_of({{1, 3}})},
      {"2 replicas", deployment_of({{1, 1}, {1, 1}})},
      {"2 replicas of 2 stages", deployment_of({{1, 2}, {1, 2}})},
      {"tp 2 beside pp 3", deployment_of({{2, 1}, {1, 3}})},
      {"tp 2, pp 2 beside 1 rank", deployment_of({{2, 2}, {1, 1}})}};
  for (const auto& [what, deployment] : deployments) {
    fixed.deployment = deployment;
    expect_near(train_on(study(), fixed), alone(), kTolerance, what);
  }
}

TEST(Deployments, InterleavedStagesLearnWhatOneRankLearns) {
  planner::FixedPlan fixed = one_rank();
  fixed.schedule.pipeline = PipelineTemplate::interleaved;
  fixed.batching.microbatches = 4;
  for (const auto& [tp, pp, replicas, chunks] :
       std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>>{
           {1, 2, 1, 2}, {1, 2, 1, 3}, {1, 3, 1, 2}, {2, 2, 1, 2}, {1, 2, 2, 3}}) {
    fixed.deployment = planner::deploy(6, tp, pp, replicas, chunks);
    expect_near(train_on(study(), fixed), alone(), kTolerance, fmt::format("tp {}, pp {}, {} chunks", tp, pp, chunks));
  }
}

/// Two hTasks a bucket, on shards.
planner::FixedPlan clocks_of_two(std::int32_t tp) {
  planner::FixedPlan fixed = one_rank();
  fixed.schedule.pipeline = PipelineTemplate::structured;
  fixed.buckets = {{0, 3}, {1, 2}};
  fixed.schedule.order = {{{false, 1, 0}, {false, 0, 0}, {false, 1, 1}, {true, 1, 0}, {true, 0, 0}, {true, 1, 1}}};
  fixed.deployment = deployment_of({{tp, 1}});
  return fixed;
}

costmodel::Profile any_profile() {
  costmodel::Profile profile = costmodel::analytic_profile("a40", costmodel::DataType::f32);
  profile.interconnect.intra_node = {"wire", 1e9, 1e-6};
  return profile;
}

/// Two hTasks of one instruction take turns at the sums of their shards.
TEST(Deployments, ClocksOfSeveralHTasksOnShardsLearnWhatOneRankLearns) {
  for (const std::int32_t tp : {2, 4}) {
    const planner::FixedPlan fixed = clocks_of_two(tp);
    const planner::Program program = planner::window_program(fixed, {study().workload, *study().samples}, 0);
    EXPECT_TRUE(std::any_of(program.stages[0].instructions.begin(), program.stages[0].instructions.end(),
                            [](const planner::Instruction& instruction) { return instruction.parts.count == 2; }));
    expect_near(train_on(study(), fixed), alone(), kTolerance, fmt::format("tp {}", tp));
    expect_near(train_on(study(), fixed, kernels::make_cpu_device, any_profile()), alone(), kTolerance,
                fmt::format("tp {}", tp));
  }
}

/// Of each row-split product that a run makes, how many tokens it had: which microbatch's it was.
std::vector<std::int64_t> row_split_products(const planner::Program& program, const planner::StageTurns& turns) {
  const planner::FixedPlan fixed = clocks_of_two(2);
  std::vector<std::int64_t> tokens;
  run_on_threads(2, [&](Communicator& communicator) {
    workload::SampleIndex samples = *study().samples;
    Runner runner({fixed, study().workload, samples, study().datasets}, communicator, cpu_device());
    runner.probe().record(true);
    runner.run(program, planner::most_waiting_messages(program), turns);
    if (communicator.rank() != 0) return;
    const std::int64_t split = study().workload.backbone.heads * study().workload.backbone.head_dim / 2;
    for (const Probe::Record& record : runner.probe().take_records()) {
      const costmodel::OperatorCall& call = record.call;
      if (call.op == costmodel::Operator::linear && call.pass == costmodel::Pass::forward && call.shape[0] == split)
        tokens.push_back(call.tokens);
    }
  });
  return tokens;
}

/// What is planned is what is run: microbatches go on in the order of their turns, whatever these are, and without any
/// one after another.
TEST(Deployments, ClocksFollowTheirTurns) {
  const planner::FixedPlan fixed = clocks_of_two(2);
  const planner::Program program = planner::window_program(fixed, {study().workload, *study().samples}, 0);
  const planner::StageProgram& stage = program.stages.front();
  const planner::LaunchTurns launches(any_profile(), study().workload.backbone,
                                      planner::pass_style(fixed, study().workload));
  const planner::StageTurns planned = launches.of(program, 0);
  planner::StageTurns one_first;  // the second part to its end, then the first
  for (const auto& [id, turns] : planned) {
    one_first[id] = turns;
    std::ranges::sort(one_first[id], std::greater());
  }
  ASSERT_FALSE(planned.empty());
  for (const planner::StageTurns& turns : {planned, one_first, planner::StageTurns()}) {
    std::vector<std::int64_t> expected;
    for (std::size_t place = 0; place < stage.instructions.size(); ++place) {
      const planner::Instruction& instruction = stage.instructions[place];
      if (instruction.kind != planner::Kind::forward) continue;
      const std::span<const planner::Part> parts = stage.parts_of(instruction);
      // A turn at the embedding's sum, then one before each layer's first sum, its second, and the head's.
      std::vector<std::int64_t> taken(parts.size(), 0);
      const auto go_on = [&](std::size_t part) {
        const std::int64_t turn = taken[part]++;
        if (turn % 2 == 1 && turn < 12)
          expected.push_back(program.microbatch(parts[part].microbatch).computed_tokens());
      };
      if (const auto order = turns.find(stage.first_id + static_cast<std::int64_t>(place)); order != turns.end())
        for (const std::int32_t part : order->second) go_on(static_cast<std::size_t>(part));
      while (std::ranges::any_of(taken, [](std::int64_t turn) { return turn < 13; }))
        for (std::size_t part = 0; part < parts.size(); ++part) go_on(part);
    }
    EXPECT_EQ(row_split_products(program, turns), expected);
  }
}

/// Rounding does not grow from step to step.
TEST(Deployments, FiftyStepsStayThoseOfOneRank) {
  SixLayers fifty;
  for (workload::Task& task : fifty.workload.tasks) task.steps = 50, task.optimizer.lr = 1e-3;
  std::vector<std::vector<workload::SampleSize>> sizes;
  for (const workload::Dataset& dataset : fifty.datasets) sizes.push_back(workload::sample_sizes(dataset));
  fifty.samples.emplace(fifty.workload.tasks, std::move(sizes));
  const Trained one = train_on(fifty, one_rank());
  ASSERT_EQ(one.steps[0].size(), 50U);
  for (const auto& [what, deployment] : std::vector<std::pair<std::string, std::vector<planner::ReplicaShape>>>{
           {"tp 2, pp 2", deployment_of({{2, 2}})}, {"tp 2 beside pp 3", deployment_of({{2, 1}, {1, 3}})}}) {
    planner::FixedPlan fixed = one_rank();
    fixed.deployment = deployment;
    expect_near(train_on(fifty, fixed), one, kTolerance, what);
  }
  planner::FixedPlan shares = one_rank();
  shares.schedule.pipeline = PipelineTemplate::one_by_one;
  shares.deployment = deployment_of({{1, 1}, {1, 1}});
  shares.shards_weights = true;
  expect_near(train_on(fifty, shares), one, kTolerance, "weights in two shares");
}

/// What a plan may be beside its deployment: template, tasks that share microbatches, recomputation, chunks, padding.
planner::FixedPlan any_plan() {
  planner::FixedPlan fixed;
  fixed.schedule.pipeline =
      *rc::gen::element(PipelineTemplate::one_forward_one_backward, PipelineTemplate::gpipe,
                        PipelineTemplate::lora_1f1b, PipelineTemplate::lora_gpipe, PipelineTemplate::one_by_one);
  const auto tp = *rc::gen::element<std::int64_t>(1, 2, 4), pp = *rc::gen::element<std::int64_t>(1, 2, 3);
  const auto replicas = tp * pp > 4 ? 1 : *rc::gen::element<std::int64_t>(1, 2);
  fixed.deployment = planner::deploy(6, tp, pp, replicas);
  for (planner::ReplicaShape& replica : fixed.deployment) {
    for (std::int64_t stage = 0; stage < pp; ++stage) {
      const auto kind = *rc::gen::element(costmodel::RecomputeKind::none, costmodel::RecomputeKind::selective,
                                          costmodel::RecomputeKind::full);
      replica.recompute.push_back({kind, *rc::gen::inRange<std::int64_t>(0, 6 / pp + 1)});
    }
  }
  planner::one_task_per_htask(4, fixed);
  if (*rc::gen::arbitrary<bool>()) {
    fixed.htasks = {{0, 1}, {2, 3}};
    fixed.buckets = {{0}, {1}};
  }
  fixed.batching.padding =
      *rc::gen::element(planner::Padding::none, planner::Padding::max_length, planner::Padding::longest);
  fixed.batching.microbatches = *rc::gen::inRange(1, 4);
  fixed.batching.chunk_size = *rc::gen::element<std::int64_t>(0, 0, 16, 32);
  fixed.batching.skips_padding = *rc::gen::arbitrary<bool>();
  if (planner::streams(fixed)) fixed.schedule.steps_per_window = *rc::gen::inRange(1, 4);
  return fixed;
}

RC_GTEST_PROP(Deployments, AnyPlanLearnsWhatOneRankLearns, ()) {
  const planner::FixedPlan fixed = any_plan();
  const Trained trained = train_on(study(), fixed);
  for (std::size_t task = 0; task < 4; ++task) {
    RC_ASSERT(trained.steps[task].size() == alone().steps[task].size());
    for (std::size_t i = 0; i < trained.steps[task].size(); ++i) {
      const double ratio = trained.steps[task][i].loss / alone().steps[task][i].loss;
      RC_LOG() << "task " << task << " step " << i << ": " << ratio - 1 << "\n";
      RC_ASSERT(std::abs(ratio - 1) < 3 * kTolerance);
    }
  }
}

RC_GTEST_PROP(Deployments, NothingHurriesOnAnyPlan, ()) {
  const planner::FixedPlan fixed = any_plan();
  if (*rc::gen::inRange(0, 8) > 0) return;  // each takes two runs of slow kernels
  expect_nothing_hurries(study(), fixed, fmt::format("{} ranks", fixed.ranks()));
  RC_ASSERT(!::testing::Test::HasFailure());
}

/// Which would wait for ever.
TEST(Deployments, ARankWhoseNeighbourHangsEndsWithAnError) {
  planner::FixedPlan fixed = one_rank();
  fixed.deployment = planner::deploy(6, 1, 2, 1);
  const planner::Program program = planner::window_program(fixed, {study().workload, *study().samples}, 0);
  run_on_threads(2, [&](Communicator& communicator) {
    workload::SampleIndex samples = *study().samples;
    Runner runner({fixed, study().workload, samples, study().datasets}, communicator, cpu_device());
    if (communicator.rank() == 0) return;
    runner.set_patience(0.2);
    try {
      runner.run(program);
      ADD_FAILURE() << "nobody sent anything";
    } catch (const Failure& failure) {
      EXPECT_NE(std::string(failure.what()).find("rank 1 has waited 0.2 s for others"), std::string::npos)
          << failure.what();
    }
  });
}

TEST(Deployments, NothingHurriesWhereStagesInterleaveOrWeightsAreShared) {
  planner::FixedPlan fixed = one_rank();
  fixed.schedule.pipeline = PipelineTemplate::interleaved;
  fixed.batching.microbatches = 4;
  fixed.deployment = planner::deploy(6, 2, 2, 1, 2);
  expect_nothing_hurries(study(), fixed, "interleaved");
  expect_nothing_hurries(study(), clocks_of_two(2), "clocks of two");
  planner::FixedPlan shares = one_rank();
  shares.schedule.pipeline = PipelineTemplate::one_by_one;
  shares.deployment = deployment_of({{1, 1}, {1, 1}});
  shares.shards_weights = true;
  expect_nothing_hurries(study(), shares, "weights in two shares");
}

}  // namespace
}  // namespace braid::exec

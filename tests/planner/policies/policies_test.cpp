#include <algorithm>

#include <gtest/gtest.h>

#include "planner/muxtune/structured_plan.h"
#include "planner/policies/registry.h"
#include "planner/streams.h"
#include "planner/studies.h"
#include "planner/window/program_stream.h"
#include "planner/window/window.h"
#include "support.h"

namespace braid::planner {
namespace {

using testing::make_study;
using testing::Study;
using testing::StudyTask;

const std::vector<StudyTask> kMixed = {{64, 4}, {128, 8, 5, 16, true}, {256, 2, 12}, {64, 6}, {128, 3, 9, 4}};

const std::vector<std::string> kPolicies = {"hf-peft",
                                            "hf-peft:resident=false:pad_to=none",
                                            "nemo",
                                            "nemo:resident=false",
                                            "megatron-fsdp",
                                            "megatron-pp",
                                            "gpipe:pad_to=none",
                                            "sl-peft",
                                            "mlora",
                                            "mlora:mode=gpipe:batch=off",
                                            "mlora:pad_to=none:pruning=off",
                                            "mlora:overlap=off",
                                            "task-fused",
                                            "task-sequential",
                                            "lobra",
                                            "lobra:dispatch=by_length:bucketing=fixed:interval=16:recompute=none",
                                            "lobra-sequential:ranges=3",
                                            "muxtune",
                                            "muxtune:fusion=literal",
                                            "muxtune:fusion=off",
                                            "muxtune:orchestration=off",
                                            "muxtune:alignment=packed",
                                            "muxtune:alignment=zero",
                                            "muxtune:chunk=128:padding=skipped",
                                            "muxtune:chunk=searched",
                                            "muxtune:drain=off",
                                            "muxtune:pad_to=none",
                                            "muxtune:order=searched"};

std::string without_meta(const Plan& plan) {
  const std::string text = to_json(plan);
  return text.substr(0, text.find("\"meta\""));
}

class EveryPolicy : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryPolicy, PlansWindowsThatKeepAllRulesOnAnyCluster) {
  for (const auto& [nodes, gpus] : {std::pair{1, 1}, std::pair{1, 4}, std::pair{2, 2}}) {
    const Study study = make_study(kMixed, nodes, gpus);
    const Plan plan = make_plan(study.input(), parse_policy(GetParam()));
    const WindowInput input{study.workload, study.samples};
    const VerifyContext rules = verify_context(plan.fixed, input, plan.profile.memory_bytes);
    std::vector<std::int64_t> next(kMixed.size(), 0);
    for (std::int64_t window = 0; window < window_count(plan.fixed, input); ++window) {
      const Program program = window_program(plan.fixed, input, window);
      ASSERT_EQ(testing::messages_of(verify(program, rules)), "") << nodes << "x" << gpus << " window " << window;
      EXPECT_EQ(program.before.stages[0].next_batch, next);
      next = program.after.stages[0].next_batch;
    }
    for (std::size_t task = 0; task < kMixed.size(); ++task) EXPECT_EQ(next[task], kMixed[task].steps);
    // Why this deployment, and at least how tasks share it.
    EXPECT_GE(plan.reasons.size(), 2u);
    EXPECT_LE(plan.reasons.size(), 8u);
    EXPECT_GT(plan.predicted.step_seconds, 0);
    EXPECT_GE(plan.predicted.bubble_ratio, 0);
    EXPECT_LE(plan.lower_bound.step_seconds, plan.predicted.step_seconds * (1 + 1e-9));
    for (std::size_t rank = 0; rank < plan.predicted.peak_memory_bytes.size(); ++rank) {
      EXPECT_LE(plan.predicted.peak_memory_bytes[rank], plan.profile.memory_bytes);
      EXPECT_LT(plan.predicted.held_memory_bytes.at(rank), plan.predicted.peak_memory_bytes[rank]);
    }
  }
}

TEST_P(EveryPolicy, PlansTheSameTwiceAndReadsBackWhatItWrote) {
  const Study study = make_study(kMixed, 2, 2);
  const PolicyChoice choice = parse_policy(GetParam());
  const Plan plan = make_plan(study.input(), choice);
  EXPECT_EQ(without_meta(plan), without_meta(make_plan(study.input(), choice)));
  const TestFolder folder;
  EXPECT_EQ(to_json(read_plan(folder.write("plan.json", to_json(plan)))), to_json(plan));
}

TEST_P(EveryPolicy, NoDeploymentIsPredictedToBeFasterThanTheBoundOfAll) {
  const PolicyChoice choice = parse_policy(GetParam());
  for (const Study& study : {make_study(kMixed, 1, 4), make_study({{512, 16}, {32, 5}}, 2, 1, 6, "h100")}) {
    const Plan best = make_plan(study.input(), choice);
    EXPECT_LE(best.lower_bound.step_seconds, best.lower_bound.deployment_step_seconds);
    for (const auto& deployment :
         deployments(study.workload, study.cluster, {}, choice.policy->parallelism(choice.options))) {
      // Of those with model chunks the fastest is planned.
      if (deployment.front().model_chunks > 1) continue;
      const Overrides fixed{.tp = deployment.front().tp, .pp = deployment.front().stages(), .microbatches = {}};
      const Plan other = make_plan(study.input(fixed), choice);
      EXPECT_LE(best.lower_bound.step_seconds, other.lower_bound.step_seconds * (1 + 1e-9)) << describe(deployment);
      EXPECT_LE(best.lower_bound.step_seconds, other.predicted.step_seconds) << describe(deployment);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, EveryPolicy, ::testing::ValuesIn(kPolicies), [](const auto& name) {
  std::string text = name.param;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return text;
});

Plan planned(const Study& study, const std::string& policy, const Overrides& overrides = {}) {
  return make_plan(study.input(overrides), parse_policy(policy));
}

TEST(MuxTune, TheTemplateTakesAboutWhatItsReplayDoes) {
  const Study study = make_study({{64, 16}, {64, 16}, {128, 8}, {256, 8}}, 1, 4);
  const std::vector<ReplicaShape> deployment = deploy(8, 1, 4, 1);
  ClockLatency latency(study.cost, study.workload.backbone);
  const PolicyChoice choice = parse_policy("muxtune");
  const PolicyInput input{study.workload, study.samples, latency, 0, deployment, 4, choice.options};
  FixedPlan fixed;
  fixed.deployment = deployment;
  fixed.htasks = {{0, 1}, {2}, {3}};
  fixed.buckets = {{0}, {1, 2}};
  fixed.batching.microbatches = 4;
  fixed.batching.padding = Padding::max_length;
  fixed.batching.chunk_size = 64;
  fixed.storage = study.cost.storage();
  LaidOutBuckets buckets;
  const std::optional<Nanoseconds> makespan = order_structured(input, BucketSearch::descending, buckets, fixed);
  ASSERT_TRUE(makespan);
  const WindowInput window{study.workload, study.samples, {}, true};
  const Program program = window_program(fixed, window, 0);
  const Durations durations = predict_durations(program, pass_style(fixed, study.workload), latency).durations;
  const Nanoseconds replayed = sim::replay(program, durations).end();
  // The optimizer's steps come on top; chunks of one sample differ by what they see of it.
  EXPECT_NEAR(static_cast<double>(replayed) / static_cast<double>(*makespan), 1.01, 0.02);
}

TEST(MuxTune, HidesCollectivesBehindOtherTasks) {
  const Study study = make_study({{128, 16}, {128, 16}, {128, 16}, {128, 16}}, 1, 4);
  const Overrides shards{.tp = 4, .pp = 1, .microbatches = {}};
  EXPECT_LT(planned(study, "muxtune", shards).predicted.step_seconds,
            planned(study, "nemo:resident=false", shards).predicted.step_seconds);
}

TEST(MuxTune, EveryTaskIsInOneHTaskAndEveryHTaskInOneBucket) {
  const Study study = make_study(kMixed, 1, 4);
  for (const Overrides& overrides : {Overrides{}, Overrides{.tp = 4, .pp = {}, .microbatches = {}}}) {
    const Plan plan = planned(study, "muxtune", overrides);
    std::vector<int> tasks(kMixed.size(), 0), htasks(plan.fixed.htasks.size(), 0);
    for (const auto& htask : plan.fixed.htasks) {
      for (const TaskIndex task : htask) ++tasks[static_cast<std::size_t>(task)];
    }
    for (const auto& bucket : plan.fixed.buckets) {
      for (const std::int32_t htask : bucket) ++htasks[static_cast<std::size_t>(htask)];
    }
    EXPECT_EQ(tasks, std::vector<int>(tasks.size(), 1));
    EXPECT_EQ(htasks, std::vector<int>(htasks.size(), 1));
  }
}

TEST(MuxTune, ChunksAreTheGreatestPowerOfTwoThatDividesEveryLengthUnlessAskedFor) {
  const Study study = make_study({{128, 4}, {384, 4}}, 1, 2);
  EXPECT_EQ(planned(study, "muxtune").fixed.batching.chunk_size, 128);
  EXPECT_EQ(planned(study, "muxtune:chunk=48").fixed.batching.chunk_size, 48);
  expect_error([&] { planned(study, "muxtune:chunk=40"); }, "'40' is not a value of chunk",
               "a positive multiple of 16");
}

TEST(Policies, MessagesThroughTheHostsTakeLonger) {
  const Study study = make_study(kMixed, 2, 2);
  const Overrides stages{.tp = {}, .pp = 4, .microbatches = 4};
  for (const std::string name : {"mlora", "megatron-pp", "muxtune"}) {
    const Plan links = planned(study, name, stages), hosts = planned(study, name + ":transport=hosts", stages);
    EXPECT_GT(hosts.predicted.step_seconds, 1.02 * links.predicted.step_seconds) << name;
    EXPECT_EQ(hosts.profile.interconnect.intra_node.name, "cpu-staged");
  }
}

TEST(Policies, FusedKernelsAreFasterForEverySystem) {
  const Study study = make_study(kMixed, 1, 2);
  for (const std::string name : {"nemo:resident=false", "megatron-fsdp", "gpipe", "mlora"}) {
    EXPECT_LT(planned(study, name + ":kernels=fused").predicted.step_seconds,
              planned(study, name).predicted.step_seconds)
        << name;
  }
}

TEST(MuxTune, WithoutADrainTheNextStepFillsTheBubbles) {
  const Study study = make_study({{128, 8}, {128, 8}, {128, 8}, {128, 8}, {64, 4}}, 1, 4);
  for (const Overrides& overrides :
       {Overrides{.tp = 1, .pp = 4, .microbatches = 1}, Overrides{.tp = 2, .pp = 2, .microbatches = 1}}) {
    const Plan drained = planned(study, "muxtune:fusion=off", overrides);
    const Plan stream = planned(study, "muxtune:fusion=off:drain=off", overrides);
    EXPECT_EQ(stream.fixed.schedule.pipeline, PipelineTemplate::stream);
    EXPECT_LT(stream.predicted.step_seconds, 0.97 * drained.predicted.step_seconds);
    EXPECT_LE(stream.lower_bound.step_seconds, stream.predicted.step_seconds);
  }
}

TEST(MuxTune, ASearchedChunkSizeIsTheOneOfTheFastestTemplate) {
  // One short task makes the paper's chunks short for all.
  const Study study = make_study({{64, 8}, {512, 8}, {512, 8}}, 1, 2);
  const Overrides stages{.tp = {}, .pp = 2, .microbatches = 4};
  const Plan paper = planned(study, "muxtune", stages), searched = planned(study, "muxtune:chunk=searched", stages);
  EXPECT_EQ(paper.fixed.batching.chunk_size, 64);
  EXPECT_GT(searched.fixed.batching.chunk_size, 64);
  EXPECT_LT(searched.predicted.step_seconds, 0.99 * paper.predicted.step_seconds);
  EXPECT_LE(searched.lower_bound.step_seconds, paper.lower_bound.step_seconds);
  double fastest = paper.predicted.step_seconds;
  for (const int size : {128, 256, 512})
    fastest = std::min(fastest, planned(study, fmt::format("muxtune:chunk={}", size), stages).predicted.step_seconds);
  EXPECT_NEAR(searched.predicted.step_seconds, fastest, 0.02 * fastest);
}

TEST(MLora, BatchesMoreTasksThanStagesIntoAsMany) {
  const Study study = make_study({{64, 4}, {64, 4}, {64, 4}, {64, 4}, {64, 4}}, 1, 2);
  EXPECT_EQ(planned(study, "mlora").fixed.htasks.size(), 2U);
  EXPECT_EQ(planned(study, "mlora:batch=off").fixed.htasks.size(), 5U);
}

TEST(MLora, TasksThatDoNotFitMemoryAtOnceWaitByPriority) {
  const auto urgent_study = [](Study study) {
    for (const TaskIndex urgent : {1, 4}) study.workload.tasks[static_cast<std::size_t>(urgent)].priority = 7;
    return study;
  };
  const Study study = urgent_study(make_study({{512, 8}, {512, 8}, {512, 8}, {512, 8}, {512, 8}}, 1, 2));
  const Overrides whole{.tp = {}, .pp = 2, .microbatches = 1};
  const std::string gpipe = "mlora:mode=gpipe:batch=off";
  const Plan roomy = planned(study, gpipe, whole);
  EXPECT_TRUE(roomy.fixed.schedule.turns.empty());

  costmodel::Profile tight = study.cost.profile();
  tight.memory_bytes = roomy.predicted.peak_memory_bytes[0] * 3 / 4;
  const Study small{study.workload, study.cluster, study.samples, costmodel::CostModel(tight)};
  const Plan plan = planned(small, gpipe, whole);
  ASSERT_GT(plan.fixed.schedule.turns.size(), 1U);
  std::vector<TaskIndex> order;
  for (const std::vector<std::int32_t>& turn : plan.fixed.schedule.turns) {
    for (const std::int32_t htask : turn) order.push_back(plan.fixed.htasks[static_cast<std::size_t>(htask)][0]);
  }
  EXPECT_EQ(std::vector(order.begin(), order.begin() + 2), (std::vector<TaskIndex>{1, 4}));
  const WindowInput input{study.workload, study.samples};
  const VerifyContext rules = verify_context(plan.fixed, input, tight.memory_bytes);
  std::vector<std::int64_t> next(5, 0);
  for (std::int64_t window = 0; window < window_count(plan.fixed, input); ++window) {
    const Program program = window_program(plan.fixed, input, window);
    EXPECT_EQ(testing::messages_of(verify(program, rules)), "") << "window " << window;
    EXPECT_EQ(program.before.stages[0].next_batch, next);
    next = program.after.stages[0].next_batch;
  }
  EXPECT_EQ(next, std::vector<std::int64_t>(5, 9));
  // With fewer microbatches under way, all fit.
  EXPECT_TRUE(planned(small, "mlora:batch=off", whole).fixed.schedule.turns.empty());
}

TEST(MLora, NoTaskWaitsThatWouldFitOutOfABatch) {
  const Study study = make_study({{512, 8}, {512, 8}, {512, 8}, {512, 8}, {512, 8}}, 1, 2);
  const Overrides whole{.tp = {}, .pp = 2, .microbatches = 1};
  const Plan batched = planned(study, "mlora", whole);
  EXPECT_EQ(batched.fixed.htasks.size(), 2U);
  costmodel::Profile tight = study.cost.profile();
  tight.memory_bytes = batched.predicted.peak_memory_bytes[0] * 3 / 4;
  const Study small{study.workload, study.cluster, study.samples, costmodel::CostModel(tight)};
  const Plan plan = planned(small, "mlora", whole);
  EXPECT_TRUE(plan.fixed.schedule.turns.empty());
  EXPECT_EQ(plan.fixed.htasks.size(), 5U);
  EXPECT_EQ(plan.fixed.schedule.order, planned(small, "mlora:batch=off", whole).fixed.schedule.order);
}

/// Of every task, when the plan has run; each Program verified in the study's memory.
std::vector<std::int64_t> steps_taken(const Plan& plan, const Study& study) {
  const WindowInput input{study.workload, study.samples};
  const VerifyContext rules = verify_context(plan.fixed, input, study.cost.profile().memory_bytes);
  ProgramStream stream(plan.fixed, input, 0, window_count(plan.fixed, input));
  std::vector<std::int64_t> next(study.workload.tasks.size(), 0);
  while (const std::optional<Slice> slice = stream.next()) {
    EXPECT_EQ(testing::messages_of(verify(slice->program, rules)), "") << "window " << slice->window;
    EXPECT_EQ(slice->program.before.stages[0].next_batch, next);
    next = slice->program.after.stages[0].next_batch;
  }
  return next;
}

TEST(MLora, WaitingTasksTakeThePlacesOfThoseThatEnd) {
  const Study study = make_study({{512, 8, 40}, {512, 8, 8}, {512, 8, 16}, {512, 8, 24}, {512, 8, 8}}, 1, 2);
  const Overrides whole{.tp = {}, .pp = 2, .microbatches = 1};
  const std::string gpipe = "mlora:mode=gpipe:batch=off";
  costmodel::Profile tight = study.cost.profile();
  tight.memory_bytes = planned(study, gpipe, whole).predicted.peak_memory_bytes[0] * 7 / 8;
  const Study small{study.workload, study.cluster, study.samples, costmodel::CostModel(tight)};
  const Plan plan = planned(small, gpipe, whole);
  EXPECT_EQ(plan.fixed.schedule.turns, (std::vector<std::vector<std::int32_t>>{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(plan.fixed.schedule.admissions,
            (std::vector<Admission>{{8, {0, 1}}, {16, {0, 2}}, {16, {0, 3}}, {8, {3, 4}}}));
  const WindowInput input{study.workload, study.samples};
  FixedPlan in_turns = plan.fixed;
  in_turns.schedule.admissions.clear();
  EXPECT_EQ(window_count(plan.fixed, input), 48);
  EXPECT_EQ(window_count(in_turns, input), 40 + 24 + 8);
  EXPECT_EQ(steps_taken(plan, small), (std::vector<std::int64_t>{40, 8, 16, 24, 8}));
}

TEST(MLora, ASchedulerThatLearnsMemoryLosesTheStepsThatItLearnsIn) {
  // Two lengths of one kind of adapter.
  const Study study = make_study({{512, 8, 20}, {256, 8, 20}, {512, 8, 10}, {256, 8, 10}}, 1, 2);
  const Overrides whole{.tp = {}, .pp = 2, .microbatches = 1};
  const std::string known = "mlora:mode=gpipe:batch=off", learned = "mlora:mode=gpipe:memory=learned";
  const Plan plenty = planned(study, learned, whole);
  EXPECT_EQ(plenty.fixed.schedule.turns.size(), 0U);
  // One by itself; then all, as the upper bounds that it leaves of the others fit.
  EXPECT_EQ(plenty.fixed.schedule.admissions,
            (std::vector<Admission>{{1, {0}}, {10, {0, 1, 2, 3}}, {9, {0, 1}}, {1, {1}}}));
  EXPECT_EQ(steps_taken(plenty, study), (std::vector<std::int64_t>{20, 20, 10, 10}));
  costmodel::Profile tight = study.cost.profile();
  const Prediction together = planned(study, known, whole).predicted;
  tight.memory_bytes =
      *std::max_element(together.peak_memory_bytes.begin(), together.peak_memory_bytes.end()) * 19 / 20;
  const Study small{study.workload, study.cluster, study.samples, costmodel::CostModel(tight)};
  const Plan plan = planned(small, learned, whole);
  EXPECT_EQ(plan.fixed.schedule.turns, planned(small, known, whole).fixed.schedule.turns);
  EXPECT_EQ(steps_taken(plan, small), (std::vector<std::int64_t>{20, 20, 10, 10}));
  EXPECT_EQ(plan.fixed.schedule.admissions.front(), (Admission{1, {0}}));
  // Rates are those of what is known once all have run.
  EXPECT_EQ(plan.predicted.step_seconds, planned(small, known, whole).predicted.step_seconds);
}

TEST(MLora, ASchedulerThatLearnsAddsUpWhatTasksHoldByThemselves) {
  // In 1F1B mode the first of four stages holds four microbatches, whosever they are; each task alone holds four, too.
  const Study study = make_study({{512, 8, 4}, {512, 8, 4}, {512, 8, 4}}, 1, 4);
  const Overrides four{.tp = {}, .pp = 4, .microbatches = 4};
  costmodel::Profile tight = study.cost.profile();
  tight.memory_bytes = planned(study, "mlora:batch=off", four).predicted.peak_memory_bytes[0] * 11 / 10;
  const Study small{study.workload, study.cluster, study.samples, costmodel::CostModel(tight)};
  EXPECT_EQ(planned(small, "mlora:batch=off", four).fixed.schedule.turns.size(), 0U);
  EXPECT_EQ(planned(small, "mlora:memory=learned", four).fixed.schedule.turns.size(), 3U);
}

TEST(MLora, MessagesThatBlockAreNoFasterAndNoBusier) {
  const Study study = make_study({{128, 8}, {128, 8}, {128, 8}, {128, 8}}, 1, 4);
  const Overrides four{.tp = {}, .pp = 4, .microbatches = 4};
  const Plan beside = planned(study, "mlora:transport=hosts", four);
  const Plan blocking = planned(study, "mlora:transport=hosts:overlap=off", four);
  EXPECT_TRUE(blocking.fixed.schedule.blocking_messages);
  EXPECT_LT(beside.predicted.step_seconds, blocking.predicted.step_seconds);
  EXPECT_LT(beside.predicted.bubble_ratio, blocking.predicted.bubble_ratio);
  EXPECT_EQ(beside.lower_bound.step_seconds, blocking.lower_bound.step_seconds);
}

TEST(MLora, FillsThePipelineThatOneTaskAtATimeLeavesEmpty) {
  const Study study = make_study({{128, 8}, {128, 8}, {128, 8}, {128, 8}}, 1, 4);
  EXPECT_LT(planned(study, "mlora").predicted.step_seconds, planned(study, "megatron-pp").predicted.step_seconds);
}

}  // namespace
}  // namespace braid::planner

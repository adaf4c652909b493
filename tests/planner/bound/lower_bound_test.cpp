#include "planner/bound/lower_bound.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "costmodel/profile/derive.h"
#include "planner/bound/best_rate.h"
#include "planner/bound/policy_bound.h"
#include "planner/policies/registry.h"
#include "planner/random_plans.h"
#include "planner/template_study.h"
#include "planner/window/predict.h"
#include "sim/replay.h"

namespace braid::planner {
namespace {

using namespace testing;
using costmodel::CostModel;
using costmodel::OperatorCall;

Timeline judge(const Program& program, const Durations& durations) {
  return sim::replay(program, durations);
}

/// Two GPUs a node. Slow links carry more than passes compute.
costmodel::Profile profile_of(const std::string& gpu, bool slow_links = false) {
  costmodel::Profile profile = costmodel::analytic_profile(gpu, costmodel::DataType::bf16);
  const auto link = [&](const char* name) { return costmodel::named_link(name, costmodel::device_of(gpu)); };
  profile.interconnect = {link(slow_links ? "cpu-staged" : "pcie4"), link(slow_links ? "eth-1g" : "ib-200g"), 2};
  return profile;
}
costmodel::Profile profile_of(const RandomPlan& made) {
  costmodel::Profile profile = profile_of(made.gpu, made.slow_links);
  profile.attention = made.attention;
  return profile;
}

double predicted_seconds(const RandomPlan& made, const CostModel& cost, const WindowInput& input) {
  ClockLatency latency(cost, made.workload.backbone);
  FixedPlan fixed = made.fixed;
  fixed.storage = cost.storage();
  return predict(fixed, input, latency, judge).step_seconds;
}

void hold_below_prediction(const RandomPlan& made, const CostModel& cost, Ratios& tightness) {
  const workload::SampleIndex samples(made.workload.tasks, made.sizes);
  const WindowInput input{made.workload, samples};
  const double predicted = predicted_seconds(made, cost, input);
  const double bound = lower_bound(made.scope, input, cost).step_seconds;
  RC_ASSERT(bound > 0);
  RC_ASSERT(bound <= predicted);
  tightness.add(predicted / bound);
  // A wider scope has no greater bound.
  BoundScope wider = made.scope;
  wider.microbatches = wider.most_chunk = 0;
  if (*rc::gen::arbitrary<bool>()) wider.drains = false;
  if (*rc::gen::arbitrary<bool>()) recompute_all(costmodel::RecomputeKind::none, wider.deployment);
  if (*rc::gen::arbitrary<bool>()) wider.shares_microbatches = true;
  if (*rc::gen::arbitrary<bool>()) wider.joins_htasks = true;
  if (*rc::gen::arbitrary<bool>()) wider.gathers_weights = false;
  if (wider.drains || !wider.one_by_one || wider.shares_microbatches)
    RC_ASSERT(lower_bound(wider, input, cost).step_seconds <= bound * (1 + 1e-9));
}

/// The same GPU, on which the adapters of some tasks were measured: curves through points at doubling sizes, the
/// roofline beyond.
costmodel::Profile part_measured(const RandomPlan& made) {
  costmodel::Profile profile = profile_of(made);
  std::vector<costmodel::AdapterShape> adapters = adapters_of(made.workload);
  adapters.resize(*rc::gen::inRange<std::size_t>(1, adapters.size() + 1));
  profile.entries = costmodel::derived_entries(profile, made.workload.backbone, adapters, 1024, 128);
  for (costmodel::ProfileEntry& entry : profile.entries) entry.source = "measured";
  return profile;
}

void record(const std::string& name, const Ratios& tightness) {
  ::testing::Test::RecordProperty(name,
                                  fmt::format("{:.3f} {:.3f} {:.3f}", tightness.least, tightness.mean, tightness.most));
}

TEST(LowerBound, NoPlanIsPredictedToBeFaster) {
  for (const costmodel::AdapterKernels kernels :
       {costmodel::AdapterKernels::separate, costmodel::AdapterKernels::split, costmodel::AdapterKernels::side_by_side,
        costmodel::AdapterKernels::fused}) {
    Ratios tightness;
    EXPECT_TRUE(rc::check([&] {
      RandomPlan made = any_plan();
      made.fixed.adapter_kernels = made.scope.kernels = kernels;
      hold_below_prediction(made, CostModel(profile_of(made)), tightness);
    })) << costmodel::name(kernels);
    record(std::string(costmodel::name(kernels)), tightness);
  }
}

TEST(LowerBound, NoPlanIsPredictedToBeFasterOnAMeasuredGpu) {
  Ratios tightness;
  EXPECT_TRUE(rc::check([&] {
    RandomPlan made = any_plan();
    // Tables of attention know no chunks: of a short sequence in chunks they say a thousandth less than of it whole.
    for (std::size_t t = 0; t < made.sizes.size(); ++t) {
      if (made.workload.tasks[t].objective.pairs() && made.fixed.batching.chunk_size > 0) RC_DISCARD("pairs in chunks");
    }
    // The product that fused kernels deepen is another shape, measured or not: no law holds between the two.
    if (made.fixed.adapter_kernels == costmodel::AdapterKernels::fused)
      made.fixed.adapter_kernels = made.scope.kernels = costmodel::AdapterKernels::side_by_side;
    hold_below_prediction(made, CostModel(part_measured(made)), tightness);
  }));
  record("measured", tightness);
}

/// Whole sequences have all pairs of scores, chunks none of later chunks. Here they are most of the work.
TEST(LowerBound, HoldsWhereChunksSpareScoresOfEagerAttention) {
  Ratios tightness;
  EXPECT_TRUE(rc::check([&] {
    RandomPlan made = any_plan();
    RC_PRE(made.fixed.batching.chunk_size > 0);
    made.attention = costmodel::AttentionKind::eager;
    made.workload.backbone.vocabulary = 100;
    made.workload.backbone.intermediate = 64;
    for (std::size_t t = 0; t < made.sizes.size(); ++t) {
      made.workload.tasks[t].max_length = 2048, made.workload.tasks[t].objective = {};
      for (workload::SampleSize& size : made.sizes[t]) size = {2048, 1000};
    }
    if (made.fixed.batching.pack_length > 0)
      made.fixed.batching.pack_length = pack_length_for({{2048}}, made.fixed.batching.chunk_size);
    hold_below_prediction(made, CostModel(profile_of(made)), tightness);
  }));
  record("chunks", tightness);
}

/// A policy with every option drawn.
PolicyChoice any_choice(const Policy& policy) {
  PolicyChoice choice{&policy, {}};
  for (const PolicyOption& option : policy.options()) {
    std::string_view value = *rc::gen::elementOf(option.values);
    // What a solver finds obeys the same bounds, and each of thousands is a process of its own.
    if (value == "solved") value = option.values.front();
    choice.options.emplace_back(option.name, std::string(value));
  }
  return choice;
}

/// A policy's plan for the drawn workload, on some deployment of its grid over one to three nodes, or with its layers
/// split anyhow.
RandomPlan planned_by(const Policy& policy, RandomPlan made, const CostModel& cost) {
  const PolicyChoice choice = any_choice(policy);
  const workload::SampleIndex samples(made.workload.tasks, made.sizes);
  ClockLatency latency(cost, made.workload.backbone);
  workload::Cluster cluster;
  cluster.gpu = made.gpu;
  cluster.nodes = *rc::gen::inRange(1, 4);
  cluster.gpus_per_node = 2;
  std::vector<ReplicaShape> deployment =
      *rc::gen::elementOf(deployments(made.workload, cluster, {}, policy.parallelism(choice.options)));
  if (deployment.front().model_chunks == 1 && *rc::gen::arbitrary<bool>()) {
    const std::vector<LayerRange> split = any_layers(made.workload.backbone.layers, deployment.front().stages());
    for (ReplicaShape& replica : deployment) replica.layers = split;
  }
  const PolicyInput input{made.workload, samples, latency, 0, deployment, made.fixed.batching.microbatches,
                          choice.options};
  Arrangement arrangement = *policy.arrange(input);
  arrangement.fixed.deployment = deployment;
  arrangement.fixed.batching.microbatches = made.fixed.batching.microbatches;
  made.scope = bound_scope(arrangement, {.tp = {}, .pp = {}, .microbatches = made.fixed.batching.microbatches});
  made.fixed = arrangement.fixed;
  return made;
}

TEST(LowerBound, NoPolicysPlanIsPredictedToBeFaster) {
  for (const std::unique_ptr<Policy>& policy : policies()) {
    if (policy->proposes() || policy->unites()) continue;
    Ratios tightness;
    EXPECT_TRUE(rc::check([&] {
      const RandomPlan made = any_plan();
      const CostModel cost(profile_of(made));
      hold_below_prediction(planned_by(*policy, made, cost), cost, tightness);
    })) << policy->name();
    record(std::string(policy->name()), tightness);
  }
}

/// Of unlike replicas, too, whose work is counted in GPU-seconds.
TEST(LowerBound, NoProposalIsPredictedToBeFaster) {
  for (const std::unique_ptr<Policy>& policy : policies()) {
    if (!policy->proposes()) continue;
    Ratios tightness;
    EXPECT_TRUE(rc::check([&] {
      RandomPlan made = any_plan();
      const CostModel cost(profile_of(made));
      const PolicyChoice choice = any_choice(*policy);
      const workload::SampleIndex samples(made.workload.tasks, made.sizes);
      ClockLatency latency(cost, made.workload.backbone);
      workload::Cluster cluster;
      cluster.gpu = made.gpu;
      cluster.nodes = *rc::gen::inRange(1, 4);
      cluster.gpus_per_node = 2;
      const std::vector<costmodel::RecomputeKind> kinds = {costmodel::RecomputeKind::none};
      const auto grid = deployments(made.workload, cluster, {}, policy->parallelism(choice.options));
      const WindowInput window{made.workload, samples};
      BestRates rates(cost);
      for (Arrangement& arrangement :
           policy->propose({made.workload, samples, cluster, latency, 0, {}, grid, choice.options, kinds})) {
        arrangement.fixed.storage = cost.storage();
        const LowerBound bound = policy_bound(arrangement, grid, {}, window, cost, rates, 0);
        made.fixed = arrangement.fixed;
        const double predicted = predicted_seconds(made, cost, window);
        RC_ASSERT(bound.step_seconds > 0);
        RC_ASSERT(bound.step_seconds <= bound.deployment_step_seconds);
        RC_ASSERT(bound.deployment_step_seconds <= predicted);
        tightness.add(predicted / bound.deployment_step_seconds);
      }
    })) << policy->name();
    record(std::string(policy->name()), tightness);
  }
}

TEST(LowerBound, IsNearWhereAttentionOverManyLengthsIsMostOfTheWork) {
  RandomPlan made;
  made.workload.backbone = costmodel::builtin_backbone("tinyllama-1.1b");
  made.workload.backbone.intermediate = 64;
  made.workload.backbone.layers = 4;
  workload::Task task;
  task.name = "long";
  task.max_length = 16384;
  task.adapter.rank = 4;
  task.adapter.targets[0] = true;
  task.global_batch_size = 8;
  task.steps = 1;
  made.workload.tasks = {task};
  made.sizes.emplace_back();
  for (std::int64_t i = 0; i < 8; ++i) made.sizes[0].push_back({16000 + i, 10});
  made.fixed.htasks = {{0}};
  made.fixed.buckets = {{0}};
  const CostModel cost(profile_of("a40"));
  for (const std::int64_t stages : {1, 2}) {
    made.fixed.deployment = made.scope.deployment = deploy(4, 1, stages, 1);
    made.scope.microbatches = 1;
    const workload::SampleIndex samples(made.workload.tasks, made.sizes);
    const WindowInput input{made.workload, samples};
    const double bound = lower_bound(made.scope, input, cost).step_seconds;
    const double predicted = predicted_seconds(made, cost, input);
    EXPECT_LE(bound, predicted);
    // One sequence counts in a round trip, as others may run beside it.
    EXPECT_GE(bound, (stages == 1 ? 0.95 : 0.5) * predicted);
  }
}

TEST(LowerBound, HoldsWhereAdaptersOfManyTasksRunBesideOneAnother) {
  RandomPlan made;
  made.workload.backbone = costmodel::builtin_backbone("llama2-7b");
  made.workload.backbone.layers = 4;
  made.fixed.htasks.emplace_back();
  for (TaskIndex t = 0; t < 8; ++t) {
    workload::Task task;
    task.name = fmt::format("t{}", t);
    task.max_length = 256;
    task.adapter.rank = 64;
    task.adapter.targets = costmodel::kSeparateModules;
    task.global_batch_size = 1;
    task.steps = 1;
    made.workload.tasks.push_back(task);
    made.sizes.push_back({{256, 10}});
    made.fixed.htasks[0].push_back(t);
  }
  made.fixed.buckets = {{0}};
  made.fixed.deployment = made.scope.deployment = deploy(4, 1, 1, 1);
  made.fixed.adapter_kernels = made.scope.kernels = costmodel::AdapterKernels::side_by_side;
  const workload::SampleIndex samples(made.workload.tasks, made.sizes);
  const WindowInput input{made.workload, samples};
  const CostModel cost(profile_of("a40"));
  const double bound = lower_bound(made.scope, input, cost).step_seconds;
  const double predicted = predicted_seconds(made, cost, input);
  EXPECT_LE(bound, predicted);
  EXPECT_GE(bound, 0.9 * predicted);
}

/// What is predicted over what is bound, of TinyLlama with so many tasks, one at a time; and what binds.
struct Gap {
  double ratio = 0;
  std::string binds;
};

Gap gap_of(const FixedPlan& fixed, std::int64_t max_length, const CostModel& cost, int tasks = 2) {
  RandomPlan made;
  made.workload.backbone = costmodel::builtin_backbone("tinyllama-1.1b");
  made.fixed = fixed;
  for (TaskIndex t = 0; t < tasks; ++t) {
    workload::Task task;
    task.name = fmt::format("t{}", t);
    task.max_length = max_length;
    task.adapter.rank = 64;
    task.adapter.targets = costmodel::kSeparateModules;
    task.global_batch_size = 16;
    task.steps = 1;
    made.workload.tasks.push_back(task);
    made.sizes.push_back(std::vector<workload::SampleSize>(16, {max_length, max_length - 1}));
    made.fixed.htasks.push_back({t});
    made.fixed.buckets.push_back({t});
  }
  if (fixed.schedule.pipeline == PipelineTemplate::one_by_one) queue_htasks(made.fixed);
  made.scope.deployment = fixed.deployment;
  made.scope.kernels = fixed.adapter_kernels;
  made.scope.one_by_one = !made.fixed.schedule.turns.empty();
  made.scope.shares_microbatches = made.scope.joins_htasks = false;
  made.scope.gathers_weights = fixed.shards_weights;
  made.scope.drains = fixed.schedule.pipeline != PipelineTemplate::lora_1f1b;
  made.scope.microbatches = fixed.batching.microbatches;
  const workload::SampleIndex samples(made.workload.tasks, made.sizes);
  const WindowInput input{made.workload, samples};
  const LowerBound bound = lower_bound(made.scope, input, cost);
  const double predicted = predicted_seconds(made, cost, input);
  EXPECT_LE(bound.step_seconds, predicted);
  return {predicted / bound.step_seconds, bound.binds};
}

TEST(LowerBound, IsNearWherePassesWaitForCollectives) {
  const CostModel slow(profile_of("a40", true)), fast(profile_of("a40"));
  FixedPlan fixed;
  fixed.schedule.pipeline = PipelineTemplate::one_by_one;
  for (const std::int64_t microbatches : {1, 4}) {
    fixed.batching.microbatches = microbatches;
    fixed.shards_weights = true;
    fixed.deployment = deploy(22, 1, 1, 4);
    EXPECT_LT(gap_of(fixed, 64, slow).ratio, 1.02);
    EXPECT_EQ(gap_of(fixed, 64, slow).binds, "collectives of stage 0");
    EXPECT_LT(gap_of(fixed, 512, fast).ratio, 1.1);
    fixed.shards_weights = false;
    fixed.deployment = deploy(22, 2, 1, 1);
    EXPECT_LT(gap_of(fixed, 64, slow).ratio, 1.02);
    EXPECT_LT(gap_of(fixed, 512, fast).ratio, 1.06);
  }
}

TEST(LowerBound, IsNearWhereTasksQueueToSumTheirGradients) {
  FixedPlan fixed;
  fixed.deployment = deploy(22, 1, 1, 4);
  fixed.schedule.pipeline = PipelineTemplate::one_forward_one_backward;
  const Gap gap = gap_of(fixed, 16, CostModel(profile_of("a40", true)), 8);
  EXPECT_LT(gap.ratio, 1.15);
  EXPECT_EQ(gap.binds, "gradient sums of stage 0");
}

TEST(LowerBound, SaysWhatBindsAndLooksPastStoppedTasks) {
  workload::Workload workload;
  workload.backbone = costmodel::builtin_backbone("llama2-7b");
  std::vector<std::vector<workload::SampleSize>> sizes;
  for (const std::string name : {"long", "short"}) {
    workload::Task task;
    task.name = name;
    task.max_length = name == "long" ? 1024 : 64;
    task.adapter.rank = 16;
    task.adapter.targets = costmodel::kSeparateModules;
    task.global_batch_size = 8;
    task.steps = 4;
    sizes.emplace_back(16, workload::SampleSize{task.max_length, task.max_length - 1});
    workload.tasks.push_back(task);
  }
  const workload::SampleIndex samples(workload.tasks, sizes);
  const CostModel cost(profile_of("a40"));
  BoundScope scope;
  scope.deployment = deploy(32, 1, 4, 1);
  scope.drains = false;
  const LowerBound both = lower_bound(scope, {workload, samples}, cost);
  // Mid-stream the long task's round trip, one sample at a time, is more than what any stage has to do.
  EXPECT_EQ(both.binds, "cycle of task long");
  const LowerBound one = lower_bound(scope, {workload, samples, {0}}, cost);
  EXPECT_EQ(one.binds, "cycle of task short");
  EXPECT_LT(one.step_seconds, both.step_seconds / 8);
  EXPECT_EQ(lower_bound(scope, {workload, samples, {0, 1}}, cost).step_seconds, 0);
  scope.deployment = deploy(32, 1, 1, 1);
  EXPECT_EQ(lower_bound(scope, {workload, samples}, cost).binds, "compute of stage 0");
}

RC_GTEST_PROP(BestRates, NoBatchIsCheaperByTheTokenAndSomeIsNearlyAsCheap, ()) {
  const CostModel cost(profile_of(*rc::gen::element<std::string>("a40", "h100")));
  BestRates rates(cost);
  OperatorCall call =
      *rc::gen::element(OperatorCall{costmodel::Operator::linear, costmodel::Pass::forward, {512, 768}},
                        OperatorCall{costmodel::Operator::lora, costmodel::Pass::backward, {512, 768, 8, 2}},
                        OperatorCall{costmodel::Operator::rms_norm, costmodel::Pass::forward, {512}},
                        OperatorCall{costmodel::Operator::all_reduce, costmodel::Pass::forward, {2}});
  // What was asked before is no matter.
  rates.seconds(call, BestRates::Unit::tokens, *rc::gen::inRange<std::int64_t>(1, 3000));
  const auto most = *rc::gen::inRange<std::int64_t>(1, 3000);
  const double least = rates.seconds(call, BestRates::Unit::tokens, most);
  double best = std::numeric_limits<double>::infinity();
  for (call.tokens = 1; call.tokens <= most; ++call.tokens)
    best = std::min(best, cost.price(call).seconds / static_cast<double>(call.tokens));
  RC_ASSERT(least <= best * (1 + 1e-12));
  RC_ASSERT(least >= best * (1 - 1.0 / 64));
}

}  // namespace
}  // namespace braid::planner

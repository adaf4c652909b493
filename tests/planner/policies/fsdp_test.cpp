#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/policies/registry.h"
#include "planner/random_plans.h"
#include "planner/studies.h"
#include "planner/window/program_stream.h"
#include "planner/window/run_memory.h"
#include "planner/window/window.h"

namespace braid::planner {
namespace {

using namespace testing;
using costmodel::Operator;
using costmodel::Pass;
using costmodel::StageShape;

/// A GPU whose ranks are joined by bare wires: no latency, each byte once.
costmodel::CostModel wired(const std::string& gpu, double bytes_per_second, double slowdown = 1) {
  costmodel::Profile profile = costmodel::analytic_profile(gpu, costmodel::DataType::bf16);
  profile.interconnect.intra_node = {"wire", bytes_per_second, 0};
  profile.overlap_slowdown = slowdown;
  return costmodel::CostModel(std::move(profile));
}

/// One task's batch in a microbatch on each of some ranks, and what its passes take with the weights in shares and with
/// all of them at every rank.
class ShardedPass {
 public:
  ShardedPass(const workload::Workload& workload, const workload::SampleIndex& samples, std::int32_t ranks,
              const costmodel::CostModel& cost)
      : ranks_(ranks), cost_(cost), backbone_(workload.backbone), latency_(cost, workload.backbone) {
    const WindowInput input{workload, samples, {}, true};
    FixedPlan fixed;
    fixed.deployment = deploy(layers(), 1, 1, ranks);
    fixed.htasks = fixed.buckets = {{0}};
    fixed.schedule.pipeline = PipelineTemplate::one_by_one;
    fixed.storage = cost.storage();
    program_ = window_program(fixed, input, 0);
    style_ = pass_style(fixed, workload);
    // Of few samples not every rank has one.
    while (program_.stages[rank_].parts.empty()) ++rank_;
  }

  std::int64_t layers() const { return backbone_.layers; }
  Bytes weights(const StageShape& stage) const { return costmodel::backbone_bytes(backbone_, stage, cost_.storage()); }
  Bytes all_weights() const { return weights({layers(), true, true, 1}); }
  Bytes layer_weights() const { return weights({1, false, false, 1}); }
  Bytes rest_weights() const { return all_weights() - layers() * layer_weights(); }

  double gather_seconds(Bytes bytes) const {
    return cost_.estimate({Operator::all_gather, Pass::forward, {ranks_}, bytes}).seconds;
  }

  /// Of the first pass of the first rank that has one.
  double seconds(Pass pass, bool shards) {
    style_.gathers_weights = shards;
    const Durations durations = predict_durations(program_, style_, latency_).durations;
    return braid::seconds(durations.stages[rank_][place(pass)]);
  }
  double computed(Pass pass) { return seconds(pass, false); }
  double sharded(Pass pass) { return seconds(pass, true); }

  /// The head, its loss and the gradient of both.
  double head_seconds(Pass pass) {
    if (pass == Pass::backward) return 0;
    const costmodel::MicrobatchLoad load = load_of(program_.microbatch(microbatch(pass)), style_.adapters);
    const std::vector<std::int32_t> rank = {0};
    const auto told = [&](bool head) {
      return latency_.alone({layers(), true, head, 1}, rank, load, pass).total.seconds;
    };
    return told(true) - told(false);
  }
  double layer_seconds(Pass pass) { return (computed(pass) - head_seconds(pass)) / static_cast<double>(layers()); }

 private:
  std::size_t place(Pass pass) const {
    const std::vector<Instruction>& all = program_.stages[rank_].instructions;
    const Kind kind = pass == Pass::forward ? Kind::forward : Kind::backward;
    const auto found = std::find_if(all.begin(), all.end(), [&](const Instruction& one) { return one.kind == kind; });
    return static_cast<std::size_t>(found - all.begin());
  }
  MicrobatchId microbatch(Pass pass) const {
    return program_.stages[rank_].parts_of(program_.stages[rank_].instructions[place(pass)]).front().microbatch;
  }

  std::int32_t ranks_;
  const costmodel::CostModel& cost_;
  const costmodel::BackboneShape& backbone_;
  ClockLatency latency_;
  Program program_;
  PassStyle style_;
  std::size_t rank_ = 0;
};

/// Two streams, event by event: the link gathers unit after unit, a layer's when one of two places for layers is free;
/// compute takes layer after layer as they come, `slowdown` times as long while the link is busy.
double pipeline_seconds(std::int64_t layers, double rest, double gather, double compute, double head, double slowdown) {
  const auto count = static_cast<std::size_t>(layers);
  const double never = std::numeric_limits<double>::infinity();
  double now = rest;
  std::size_t gathered = 0, computed = 0;
  double left_to_gather = gather, left_to_compute = compute;
  while (computed < count) {
    const bool gathers = gathered < count && gathered < computed + 2, computes = computed < gathered;
    const double pace = gathers ? 1 / slowdown : 1;
    const double step = std::min(gathers ? left_to_gather : never, computes ? left_to_compute / pace : never);
    now += step;
    const bool ends_gather = gathers && left_to_gather <= step, ends_layer = computes && left_to_compute <= step * pace;
    if (gathers) left_to_gather = ends_gather ? gather : left_to_gather - step;
    if (computes) left_to_compute = ends_layer ? compute : left_to_compute - step * pace;
    gathered += ends_gather;
    computed += ends_layer;
  }
  return now + head;
}

constexpr double kNanosecond = 1e-9;

RC_GTEST_PROP(Fsdp, APassIsAPipelineOfGathersAndLayersOfWhichTwoAreThere, ()) {
  workload::Workload workload;
  workload.backbone = any_backbone();
  std::vector<std::vector<workload::SampleSize>> sizes(1);
  workload.tasks.push_back(any_task(0, sizes[0]));
  const workload::SampleIndex samples(workload.tasks, sizes);
  const costmodel::CostModel cost = wired(*rc::gen::element<std::string>("a40", "h100"),
                                          std::pow(10, *rc::gen::inRange(7, 14)), *rc::gen::element(1.0, 1.1, 1.5));
  ShardedPass pass(workload, samples, *rc::gen::inRange(2, 9), cost);
  for (const Pass direction : {Pass::forward, Pass::backward}) {
    const double rest = direction == Pass::forward ? pass.gather_seconds(pass.rest_weights()) : 0;
    const double expected =
        pipeline_seconds(pass.layers(), rest, pass.gather_seconds(pass.layer_weights()), pass.layer_seconds(direction),
                         pass.head_seconds(direction), cost.overlap_slowdown());
    const double told = pass.sharded(direction);
    RC_ASSERT(std::abs(told - expected) <= 2 * kNanosecond * static_cast<double>(pass.layers()));
    // Between nothing hidden and all but the first gathers.
    const double gathers = rest + static_cast<double>(pass.layers()) * pass.gather_seconds(pass.layer_weights());
    RC_ASSERT(told <= pass.computed(direction) + gathers + 2 * kNanosecond);
    RC_ASSERT(told >= std::max(pass.computed(direction), gathers) - 2 * kNanosecond);
  }
}

/// TinyLlama with a task of samples of 64 tokens.
Study tiny_study(std::int64_t layers) {
  return make_study({{64, 8, 9, 8, true}}, 1, 4, layers);
}

TEST(Fsdp, OneLayerComputesWhenAllOfItsWeightsHaveCome) {
  const Study study = tiny_study(1);
  for (const double speed : {1e7, 1e10, 1e13}) {
    const costmodel::CostModel cost = wired("a40", speed);
    ShardedPass pass(study.workload, study.samples, 4, cost);
    const double rest = pass.gather_seconds(pass.rest_weights()), layer = pass.gather_seconds(pass.layer_weights());
    EXPECT_NEAR(pass.sharded(Pass::forward), rest + layer + pass.computed(Pass::forward), 2 * kNanosecond);
    EXPECT_NEAR(pass.sharded(Pass::backward), layer + pass.computed(Pass::backward), 2 * kNanosecond);
  }
}

TEST(Fsdp, FastGathersHideBehindTheLayersBefore) {
  const Study study = tiny_study(22);
  const costmodel::CostModel cost = wired("a40", 1e12);
  ShardedPass pass(study.workload, study.samples, 4, cost);
  const double rest = pass.gather_seconds(pass.rest_weights()), layer = pass.gather_seconds(pass.layer_weights());
  ASSERT_GT(pass.layer_seconds(Pass::forward), layer);
  EXPECT_NEAR(pass.sharded(Pass::forward), rest + layer + pass.computed(Pass::forward), 2 * kNanosecond);
  EXPECT_NEAR(pass.sharded(Pass::backward), layer + pass.computed(Pass::backward), 2 * kNanosecond);
}

TEST(Fsdp, ALinkCarriesTheOtherRanksSharesForwardAndTheLayersAgainBackwardAndNothingElse) {
  // So slow that all but the last layer hides behind the gathers: what is left is bytes over bandwidth.
  constexpr double kSpeed = 1e6;
  const Study study = tiny_study(22);
  const costmodel::CostModel cost = wired("a40", kSpeed);
  for (const int ranks : {2, 4, 8}) {
    ShardedPass pass(study.workload, study.samples, ranks, cost);
    const auto carried = [&](Pass direction) {
      return kSpeed * (pass.sharded(direction) - pass.layer_seconds(direction) - pass.head_seconds(direction));
    };
    const double others = (ranks - 1.0) / ranks;
    EXPECT_NEAR(carried(Pass::forward), others * static_cast<double>(pass.all_weights()), 1);
    // Shares of gradients would go back here; frozen weights have none.
    EXPECT_NEAR(carried(Pass::backward), others * static_cast<double>(22 * pass.layer_weights()), 1);
  }
}

TEST(Fsdp, RanksAreAsBusyAsWithoutShares) {
  const Study study = tiny_study(22);
  const WindowInput input{study.workload, study.samples};
  for (const double speed : {1e8, 1e10, 1e12}) {
    const costmodel::CostModel cost = wired("a40", speed);
    ClockLatency latency(cost, study.workload.backbone);
    FixedPlan fixed;
    fixed.deployment = deploy(22, 1, 1, 4);
    fixed.htasks = fixed.buckets = {{0}};
    fixed.schedule.pipeline = PipelineTemplate::one_by_one;
    fixed.storage = cost.storage();
    const auto told = [&](bool shards) {
      fixed.shards_weights = shards;
      return predict(fixed, input, latency, study.input().judge);
    };
    const auto busy = [](const Prediction& one) { return (1 - one.bubble_ratio) * one.step_seconds; };
    const Prediction whole = told(false), shared = told(true);
    EXPECT_NEAR(busy(shared) / busy(whole), 1, 1e-6);
    EXPECT_GT(shared.bubble_ratio, whole.bubble_ratio);
    EXPECT_GT(shared.bubble_ratio, speed < 1e9 ? 0.9 : 0);
  }
}

TEST(Fsdp, OnlyAdaptersGradientsAreReduced) {
  const Study study = make_study({{64, 8, 9, 8, true}, {128, 4, 9, 16}}, 1, 4);
  const Plan plan = make_plan(study.input(), parse_policy("megatron-fsdp"));
  ASSERT_EQ(plan.fixed.deployment.size(), 4U);
  const WindowInput input{study.workload, study.samples};
  ClockLatency latency(study.cost, study.workload.backbone);
  for (const std::int64_t window : run_memory(plan.fixed, input).telling_windows) {
    const Program program = window_program(plan.fixed, input, window);
    const Durations durations = predict_durations(program, pass_style(plan.fixed, study.workload), latency).durations;
    for (std::size_t s = 0; s < program.stages.size(); ++s) {
      int steps = 0, sums = 0;
      for (std::size_t i = 0; i < program.stages[s].instructions.size(); ++i) {
        const Instruction& instruction = program.stages[s].instructions[i];
        steps += instruction.kind == Kind::step;
        if (instruction.kind != Kind::sync_adapter) continue;
        ++sums;
        const costmodel::AdapterShape& adapter =
            study.workload.tasks[static_cast<std::size_t>(instruction.task)].adapter;
        const Bytes bytes = 4 * study.workload.backbone.layers * adapter.layer_parameters(study.workload.backbone);
        EXPECT_EQ(instruction.bytes, bytes);
        EXPECT_EQ(durations.stages[s][i],
                  nanoseconds(study.cost.estimate({Operator::all_reduce, Pass::forward, {4}, bytes}).seconds));
      }
      EXPECT_EQ(sums, steps);
    }
  }
}

TEST(Fsdp, KeepsItsShareOfTheWeightsAndTwoLayers) {
  const Study study = make_study({{64, 8}}, 1, 4, 22);
  const auto peak = [&](const std::string& policy) {
    const Plan plan = make_plan(study.input({.tp = {}, .pp = 1, .microbatches = 2}), parse_policy(policy));
    return plan.predicted.peak_memory_bytes[0];
  };
  const costmodel::Storage storage = study.cost.storage();
  const auto weights = [&](std::int64_t layers, bool ends) {
    return costmodel::backbone_bytes(study.workload.backbone, {layers, ends, ends, 1}, storage);
  };
  EXPECT_EQ(peak("hf-peft:resident=false") - peak("megatron-fsdp"),
            weights(22, true) - (weights(22, true) + 3) / 4 - 2 * weights(1, false) - weights(0, true));
}

}  // namespace
}  // namespace braid::planner

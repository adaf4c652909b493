#include "planner/latency/operator_graph.h"

#include <map>
#include <tuple>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/stages.h"

namespace braid::planner {
namespace {

using costmodel::AdapterKernels;
using costmodel::MicrobatchLoad;
using costmodel::ModuleGroup;
using costmodel::Operator;
using costmodel::OperatorCall;
using costmodel::Pass;

/// How often each kind of call stands there.
using Counts = std::map<
    std::tuple<Operator, Pass, costmodel::OperatorShape, std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool>,
    double>;

void count(Counts& counts, const std::vector<OperatorCall>& calls) {
  for (const OperatorCall& call : calls) {
    counts[{call.op, call.pass, call.shape, call.tokens, call.context, call.prefix, call.sequences, call.beside}] +=
        call.count;
  }
}

RC_GTEST_PROP(OperatorGraph, HoldsTheCallsOfTheStageAndNoOthers, ()) {
  const AnyStage any = any_stage();
  const MicrobatchLoad load = any_load(*rc::gen::inRange(0, 4) + 1, any_kernels());
  const OperatorGraph graph = graph_of(any, load);
  Counts in_graph, in_list;
  for (OperatorVertex v = 0; v < boost::num_vertices(graph); ++v) count(in_graph, graph[v].calls);
  count(in_list, stage_operators(any.backbone, any.stage, load, any.pass, any.storage));
  count(in_list, stage_collectives(any.backbone, any.stage, load, any.pass, any.storage));
  RC_ASSERT(in_graph == in_list);
}

RC_GTEST_PROP(OperatorGraph, StandsInAnOrderThatItsEdgesAllowAndStartsAtOnePlace, ()) {
  const OperatorGraph graph = graph_of(any_stage(), any_load(2, any_kernels()));
  for (OperatorVertex v = 0; v < boost::num_vertices(graph); ++v) {
    const std::set<OperatorVertex> before = predecessors_of(graph, v);
    RC_ASSERT(before.size() == boost::in_degree(v, graph));  // no edge twice
    RC_ASSERT(before.empty() == (v == 0));
    if (v > 0) RC_ASSERT(*before.rbegin() < v);
    RC_ASSERT(graph[v].communication == is_collective(graph[v].calls.front().op));
  }
}

RC_GTEST_PROP(OperatorGraph, AdaptersStandBesideTheirProduct, ()) {
  const AnyStage any = any_stage();
  const OperatorGraph graph =
      graph_of(any, any_load(2, *rc::gen::element(AdapterKernels::separate, AdapterKernels::side_by_side)));
  std::map<std::tuple<std::int32_t, ModuleGroup, bool>, OperatorVertex> products;
  for (OperatorVertex v = 0; v < boost::num_vertices(graph); ++v) {
    const OperatorCall& call = graph[v].calls.front();
    if (call.op == Operator::linear) products[{graph[v].layer, graph[v].group, call.pass == Pass::forward}] = v;
  }
  for (OperatorVertex v = 0; v < boost::num_vertices(graph); ++v) {
    if (!graph[v].adapter) continue;
    const Pass pass = graph[v].calls.front().pass;
    const auto found = products.find({graph[v].layer, graph[v].group, pass == Pass::forward});
    if (pass == Pass::parameters) {
      RC_ASSERT(found == products.end());
      RC_ASSERT(successors_of(graph, v).empty());
      continue;
    }
    RC_ASSERT(found != products.end());
    RC_ASSERT(successors_of(graph, v) == successors_of(graph, found->second));
    // Both read the same; what is computed again for the adapter lies between.
    std::set<OperatorVertex> input = predecessors_of(graph, v);
    const OperatorNode& first = graph[*input.begin()];
    const bool kept =
        any.storage.keeps_operator_inputs && any.stage.recompute.kind != costmodel::RecomputeKind::selective;
    const bool again = pass == Pass::backward && !kept && first.calls.front().pass == Pass::forward &&
                       !first.communication && input != predecessors_of(graph, found->second);
    if (again) input = predecessors_of(graph, *input.begin());
    RC_ASSERT(input == predecessors_of(graph, found->second));
  }
}

RC_GTEST_PROP(OperatorGraph, FusedAdaptersComeBeforeTheProductThatTakesTheirRows, ()) {
  const AnyStage any = any_stage();
  const OperatorGraph graph = graph_of(any, any_load(2, AdapterKernels::fused));
  for (OperatorVertex v = 0; v < boost::num_vertices(graph); ++v) {
    const OperatorCall& call = graph[v].calls.front();
    if (call.op != Operator::fused_lora && call.op != Operator::fused_lora_dropout) continue;
    RC_ASSERT(!graph[v].adapter);
    if (call.pass == Pass::parameters) continue;
    const std::set<OperatorVertex> after = successors_of(graph, v);
    RC_ASSERT(after.size() == 1U);
    RC_ASSERT(graph[*after.begin()].calls.front().op == Operator::linear);
    RC_ASSERT(graph[*after.begin()].group == graph[v].group);
  }
}

RC_GTEST_PROP(OperatorGraph, ASplitGradientWaitsForItsAdapterAndIsReadInItsPlace, ()) {
  AnyStage any = any_stage();
  any.pass = Pass::backward;
  const OperatorGraph graph = graph_of(any, any_load(2, AdapterKernels::split));
  for (OperatorVertex v = 0; v < boost::num_vertices(graph); ++v) {
    if (graph[v].calls.front().op != Operator::split_gradient) continue;
    RC_ASSERT(predecessors_of(graph, v) == std::set<OperatorVertex>{v - 1});
    RC_ASSERT(graph[v - 1].calls.front().op == Operator::lora ||
              graph[v - 1].calls.front().op == Operator::lora_dropout);
    RC_ASSERT(successors_of(graph, v - 1) == std::set<OperatorVertex>{v});
  }
}

RC_GTEST_PROP(OperatorGraph, PartialSumsMeetBeforeAnyoneReadsThem, ()) {
  AnyStage any = any_stage();
  any.stage.tp = *rc::gen::element(2, 4);
  const OperatorGraph graph = graph_of(any, any_load(2, any_kernels()));
  // The products whose inner dimension is divided: their results are partial on every rank.
  for (OperatorVertex v = 0; v < boost::num_vertices(graph); ++v) {
    const OperatorNode& node = graph[v];
    const OperatorCall& call = node.calls.front();
    const bool by_columns = node.group == ModuleGroup::qkv || node.group == ModuleGroup::gate_up;
    const bool forward = call.pass == Pass::forward;
    const bool partial = (call.op == Operator::linear || node.adapter) && by_columns != forward;
    if (call.pass == Pass::parameters || !(partial || call.op == Operator::embedding)) continue;
    for (const OperatorVertex after : successors_of(graph, v)) {
      const OperatorNode& next = graph[after];
      RC_ASSERT(next.communication || next.calls.front().op == Operator::split_gradient);
    }
  }
}

TEST(OperatorGraph, LatenciesAddUpToTheStagesWithoutTheHost) {
  costmodel::Profile profile = costmodel::analytic_profile("a40", costmodel::DataType::bf16);
  profile.interconnect.intra_node = costmodel::named_link("nvlink", costmodel::device_of("a40"));
  const costmodel::CostModel cost(profile);
  profile.launch_seconds = 0;
  const costmodel::CostModel device(profile);
  const costmodel::BackboneShape backbone = costmodel::builtin_backbone("llama2-7b");
  MicrobatchLoad load = together(costmodel::load_of(costmodel::adapter_on_all(16), {128, 128, 256}),
                                 costmodel::load_of(costmodel::adapter_on_all(8), {64}));
  for (const AdapterKernels kernels :
       {AdapterKernels::separate, AdapterKernels::split, AdapterKernels::side_by_side, AdapterKernels::fused}) {
    load.kernels = kernels;
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      const costmodel::StageShape stage{8, true, true, 4};
      const OperatorGraph graph = stage_graph(backbone, stage, load, pass, cost.storage(), device_pricing(cost));
      Nanoseconds compute = 0, communication = 0;
      for (OperatorVertex v = 0; v < boost::num_vertices(graph); ++v)
        (graph[v].communication ? communication : compute) += graph[v].latency;
      const auto nodes = static_cast<double>(boost::num_vertices(graph));  // each rounded
      EXPECT_NEAR(static_cast<double>(compute),
                  device.estimate(stage_operators(backbone, stage, load, pass, device.storage())).seconds * 1e9, nodes);
      EXPECT_NEAR(static_cast<double>(communication),
                  device.estimate(stage_collectives(backbone, stage, load, pass, cost.storage())).seconds * 1e9, nodes);
    }
  }
}

}  // namespace
}  // namespace braid::planner

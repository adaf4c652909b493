#pragma once

#include <set>
#include <vector>

#include <rapidcheck.h>

#include "costmodel/shapes.h"
#include "planner/latency/operator_graph.h"

/// Random stages with what hTasks bring to them.
namespace braid::planner {

inline costmodel::AdapterShape any_adapter() {
  costmodel::AdapterShape adapter = costmodel::adapter(*rc::gen::inRange(1, 33), {});
  for (bool& target : adapter.targets) target = *rc::gen::arbitrary<bool>();
  adapter.dropout = *rc::gen::element(0.0, 0.1);
  return adapter;
}

/// Of so many tasks, each with a few sequences.
inline costmodel::MicrobatchLoad any_load(int tasks, costmodel::AdapterKernels kernels) {
  costmodel::MicrobatchLoad load;
  for (int task = 0; task < tasks; ++task) {
    load = together(load, costmodel::load_of(any_adapter(), {*rc::gen::inRange(2, 200), *rc::gen::element(64, 128)}));
  }
  load.kernels = kernels;
  if (*rc::gen::inRange(0, 8) == 0) load.scored = 0;
  return load;
}

inline costmodel::AdapterKernels any_kernels() {
  using enum costmodel::AdapterKernels;
  return *rc::gen::element(separate, split, side_by_side, fused);
}

struct AnyStage {
  costmodel::BackboneShape backbone;
  costmodel::StageShape stage;
  costmodel::Pass pass = costmodel::Pass::forward;
  costmodel::Storage storage;
};

inline AnyStage any_stage() {
  AnyStage any;
  any.backbone = costmodel::small_backbone();
  any.backbone.heads = *rc::gen::inRange(1, 9);
  any.backbone.kv_heads = *rc::gen::inRange<std::int64_t>(1, any.backbone.heads + 1);
  any.backbone.architecture = *rc::gen::element(costmodel::Architecture::llama, costmodel::Architecture::gpt2);
  any.backbone.qk_norm = any.backbone.gated() && *rc::gen::arbitrary<bool>();
  any.stage = {*rc::gen::inRange(0, 5), *rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>(),
               *rc::gen::element(1, 2, 4)};
  any.stage.sequence_parallel = any.stage.tp > 1 && *rc::gen::arbitrary<bool>();
  const auto layers = static_cast<int>(any.stage.layers);
  const auto kind = *rc::gen::element(costmodel::RecomputeKind::selective, costmodel::RecomputeKind::full);
  any.stage.recompute = {kind, *rc::gen::inRange(0, layers + 1)};
  any.pass = *rc::gen::element(costmodel::Pass::forward, costmodel::Pass::backward);
  any.storage.keeps_operator_inputs = *rc::gen::arbitrary<bool>();
  any.storage.whole_logits = *rc::gen::arbitrary<bool>();
  return any;
}

/// Prices that tell kinds of work apart, and grow less than the sum for calls beside one another.
inline LaunchPricing made_up_pricing() {
  return [](std::span<const costmodel::OperatorCall> calls) {
    Nanoseconds most = 0, sum = 0;
    for (const costmodel::OperatorCall& call : calls) {
      const Nanoseconds price = (call.tokens * (7 + 3 * static_cast<int>(call.op)) + call.shape[1]) % 997 + 1;
      most = std::max(most, price);
      sum += price;
    }
    return std::max(most, sum * 2 / 3);
  };
}

inline OperatorGraph graph_of(const AnyStage& any, const costmodel::MicrobatchLoad& load, std::int32_t htask = 0) {
  return stage_graph(any.backbone, any.stage, load, any.pass, any.storage, made_up_pricing(), htask);
}

inline std::set<OperatorVertex> predecessors_of(const OperatorGraph& graph, OperatorVertex vertex) {
  std::set<OperatorVertex> before;
  for (auto [edge, last] = boost::in_edges(vertex, graph); edge != last; ++edge)
    before.insert(boost::source(*edge, graph));
  return before;
}

inline std::set<OperatorVertex> successors_of(const OperatorGraph& graph, OperatorVertex vertex) {
  std::set<OperatorVertex> after;
  for (auto [edge, last] = boost::out_edges(vertex, graph); edge != last; ++edge)
    after.insert(boost::target(*edge, graph));
  return after;
}

}  // namespace braid::planner

#include "planner/latency/operator_graph.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/error.h"

namespace braid::planner {
namespace {

using costmodel::BackboneShape;
using costmodel::LayerOp;
using costmodel::LayerWork;
using costmodel::MicrobatchLoad;
using costmodel::ModuleGroup;
using costmodel::Operator;
using costmodel::OperatorCall;
using costmodel::Pass;
using costmodel::RecomputeKind;
using costmodel::Slot;
using costmodel::StageShape;

/// The calls of one layer, or of what lies outside the layers, as launches to be put in their places.
class Launches {
 public:
  Launches(const BackboneShape& backbone, const StageShape& stage, const MicrobatchLoad& load, Pass pass,
           const costmodel::Storage& storage, const LaunchPricing& pricing, std::int32_t htask) {
    const std::vector<OperatorCall> calls = stage_operators(backbone, stage, load, pass, storage);
    // Of either direction: a layer that is computed again goes forward first.
    std::size_t products_forward = 0, products_backward = 0;
    for (std::size_t first = 0, last = 0; first < calls.size(); first = last) {
      for (last = first + 1; last < calls.size() && calls[last].beside;) ++last;
      // Every stage has one, and so none of its layers.
      if (calls[first].op == Operator::dispatch && stage.layers > 0) continue;
      const bool forward = calls[first].pass == Pass::forward;
      const std::size_t last_product = costmodel::kModuleGroups.size() - 1;
      std::size_t& products = forward ? products_forward : products_backward;
      if (calls[first].op == Operator::linear) ++products;
      Work& work =
          add({calls.begin() + static_cast<std::ptrdiff_t>(first), calls.begin() + static_cast<std::ptrdiff_t>(last)},
              pricing, htask);
      // The bottom layer's qkv adapters have no product before them.
      if (products > 0)
        work.node.group = costmodel::kModuleGroups[forward ? products - 1 : last_product + 1 - products];
      if (calls[first].pass == Pass::parameters) work.node.group = ModuleGroup::qkv;
    }
    for (const OperatorCall& call : stage_collectives(backbone, stage, load, pass, storage)) {
      add({call}, pricing, htask).node.communication = true;
    }
  }

  /// The next of these that is left, if any.
  std::optional<OperatorNode> take(Operator op, Pass pass = Pass::forward) {
    return take_if(
        [&](const OperatorNode& node) { return node.calls.front().op == op && node.calls.front().pass == pass; });
  }
  /// Of a layer's calls those that go forward come before those that go back.
  std::optional<OperatorNode> take_product(ModuleGroup group) {
    return take_if(
        [&](const OperatorNode& node) { return node.calls.front().op == Operator::linear && node.group == group; });
  }
  std::optional<OperatorNode> take_adapter(ModuleGroup group, bool forward) {
    return take_if([&](const OperatorNode& node) { return adapts(node, group, forward); });
  }
  bool adapts(ModuleGroup group) const {
    return std::any_of(works_.begin(), works_.end(),
                       [&](const Work& work) { return work.left > 0 && adapts(work.node, group, false); });
  }
  bool empty() const {
    return std::all_of(works_.begin(), works_.end(), [](const Work& work) { return work.left == 0; });
  }

 private:
  struct Work {
    OperatorNode node;
    int left = 1;
  };

  static bool adapts(const OperatorNode& node, ModuleGroup group, bool forward) {
    const OperatorCall& call = node.calls.front();
    return (node.adapter || is_fused_adapter(call.op)) && node.group == group &&
           (call.pass == Pass::forward) == forward;
  }

  Work& add(std::vector<OperatorCall> calls, const LaunchPricing& pricing, std::int32_t htask) {
    Work work;
    // A split gradient is as many additions in a row as the group has modules; the others stand in several places.
    if (calls.front().op != Operator::split_gradient) {
      work.left = static_cast<int>(calls.front().count);
      for (OperatorCall& call : calls) call.count = 1;
    }
    work.node.latency = pricing(calls);
    work.node.adapter = is_adapter(calls.front().op) || calls.front().op == Operator::split_gradient;
    work.node.htask = htask;
    work.node.calls = std::move(calls);
    return works_.emplace_back(std::move(work));
  }

  template <typename Matches>
  std::optional<OperatorNode> take_if(const Matches& matches) {
    for (Work& work : works_) {
      if (work.left == 0 || !matches(work.node)) continue;
      if (--work.left == 0) return std::move(work.node);
      return work.node;
    }
    return std::nullopt;
  }

  std::vector<Work> works_;
};

/// Whose results the next operator reads.
using Ends = std::vector<OperatorVertex>;

Ends both(Ends a, const Ends& b) {
  for (const OperatorVertex end : b) {
    if (std::find(a.begin(), a.end(), end) == a.end()) a.push_back(end);
  }
  return a;
}

/// Puts launches into a graph, layer after layer.
class StageGraph {
 public:
  StageGraph(const BackboneShape& backbone, const StageShape& stage, OperatorGraph& graph)
      : backbone_(backbone), ops_(costmodel::layer_ops(backbone)), stage_(stage), graph_(graph) {}

  void embed(Launches& work) {
    ends_ = then(work.take(Operator::embedding), ends_);
    ends_ = sum_up(work, ends_);
    ends_ = then(work.take(Operator::residual), ends_);
  }

  void start(Launches& work, Pass pass) { ends_ = then(work.take(Operator::dispatch, pass), ends_); }

  void score(Launches& work) {
    ends_ = gather(work, ends_);
    ends_ = then(work.take(Operator::head_loss), ends_);
    // The maxima and sums of the loss; then the gradient towards the layers.
    ends_ = then(work.take(Operator::all_reduce), ends_);
    ends_ = sum_up(work, ends_);
  }

  void forward_layer(Launches work, std::int32_t layer) {
    layer_ = layer;
    run_forward(work);
    finish(work);
  }

  void backward_layer(Launches work, std::int32_t layer, RecomputeKind recompute) {
    layer_ = layer;
    if (recompute == RecomputeKind::full) run_forward(work);
    run_backward(work, recompute == RecomputeKind::selective);
    finish(work);
  }

  void finish(const Launches& work) {
    layer_ = -1;
    BRAID_CHECK(work.empty(), "a stage of {} has work without a place", backbone_.name);
  }

 private:
  /// Whose results stand in each slot; going back, whose gradients do.
  using Slots = std::array<Ends, costmodel::kSlotCount>;
  static Ends& at(Slots& slots, Slot slot) { return slots[static_cast<std::size_t>(slot)]; }

  void run_forward(Launches& work) {
    Slots made;
    at(made, Slot::input) = ends_;
    for (const LayerOp& op : ops_) {
      const Ends& from = at(made, op.from);
      Ends to;
      switch (op.work) {
        case LayerWork::norm:
          to = gather(work, then(work.take(charged(op)), from));
          break;
        case LayerWork::linear:
          to = product(work, op.group, Pass::forward, from, from);
          if (splits_rows(op.group)) to = sum_up(work, to);
          break;
        case LayerWork::residual:
          to = then(work.take(charged(op)), both(from, at(made, op.also)));
          break;
        case LayerWork::head_norm:
        case LayerWork::rope:
        case LayerWork::attention:
        case LayerWork::activation:
          to = then(work.take(charged(op)), from);
          break;
      }
      at(made, op.to) = to;
    }
    ends_ = at(made, Slot::output);
  }

  void run_backward(Launches& work, bool selectively) {
    Slots back, again;
    at(back, Slot::output) = ends_;
    for (auto op = ops_.rbegin(); op != ops_.rend(); ++op) {
      Ends out = at(back, op->to);
      switch (op->work) {
        case LayerWork::residual:
          at(back, op->also) = out;
          break;
        case LayerWork::linear: {
          if (splits_rows(op->group)) out = gather(work, out);
          const LayerOp& writer = costmodel::writer_of(ops_, op->from);
          Ends input = out;
          if (!writer.kept || selectively) input = compute_again(work, writer, op->group, selectively, out);
          // Attention's way back reads its result, too.
          if (selectively && recomputed_selectively(writer.work)) at(again, op->from) = input;
          out = product(work, op->group, Pass::backward, out, input);
          if (!splits_rows(op->group)) out = sum_up(work, out);
          break;
        }
        case LayerWork::norm:
          out = then(work.take(charged(*op), Pass::backward), both(out, at(back, op->from)));
          break;
        case LayerWork::attention:
        case LayerWork::activation:
          out = both(out, at(again, op->to));
          out = then(work.take(charged(*op), Pass::backward), out);
          break;
        case LayerWork::head_norm:
        case LayerWork::rope:
          out = then(work.take(charged(*op), Pass::backward), out);
          break;
      }
      at(back, op->from) = out;
    }
    ends_ = at(back, Slot::input);
  }

  Operator charged(const LayerOp& op) const { return operator_of(backbone_, op.work); }

  /// What a product's adapters read of a result that is not there, after `before`: of the adapters' own inputs where
  /// there are adapters, of what selective recomputation drops always.
  Ends compute_again(Launches& work, const LayerOp& writer, ModuleGroup group, bool selectively, const Ends& before) {
    const bool dropped = selectively && recomputed_selectively(writer.work);
    if (!dropped && (writer.kept || !work.adapts(group))) return before;
    return then(work.take(charged(writer)), before);
  }

  /// What comes after the operator; just `before` where the stage has none.
  Ends then(std::optional<OperatorNode> node, const Ends& before) {
    if (!node) return before;
    node->layer = layer_;
    const OperatorVertex vertex = boost::add_vertex(graph_);
    graph_[vertex] = std::move(*node);
    for (const OperatorVertex end : before) boost::add_edge(end, vertex, graph_);
    return {vertex};
  }

  /// Partial sums meet; with sequence parallelism each rank keeps its share.
  Ends sum_up(Launches& work, const Ends& before) {
    return then(work.take(stage_.sequence_parallel ? Operator::reduce_scatter : Operator::all_reduce), before);
  }
  Ends gather(Launches& work, const Ends& before) { return then(work.take(Operator::all_gather), before); }

  /// The frozen product with its adapters beside it. LoRAFusion's kernels make the low-rank rows that the product takes
  /// in.
  Ends product(Launches& work, ModuleGroup group, Pass pass, const Ends& input, const Ends& adapter_input) {
    Ends adapters, rows;
    while (std::optional<OperatorNode> node = work.take_adapter(group, pass == Pass::forward)) {
      const Operator op = node->calls.front().op;
      if (op == Operator::split_gradient) {
        adapters.back() = then(std::move(node), {adapters.back()}).front();
      } else {
        (is_fused_adapter(op) ? rows : adapters).push_back(then(std::move(node), adapter_input).front());
      }
    }
    return both(then(work.take_product(group), both(input, rows)), adapters);
  }

  const BackboneShape& backbone_;
  std::span<const LayerOp> ops_;
  const StageShape& stage_;
  OperatorGraph& graph_;
  Ends ends_;
  std::int32_t layer_ = -1;
};

}  // namespace

OperatorGraph stage_graph(const BackboneShape& backbone, const StageShape& stage, const MicrobatchLoad& load, Pass pass,
                          const costmodel::Storage& storage, const LaunchPricing& pricing, std::int32_t htask) {
  BRAID_CHECK(load.tokens > 0, "a microbatch of hTask {} has no tokens", htask);
  const auto launches = [&](std::int64_t layers, bool ends, RecomputeKind recompute = RecomputeKind::none) {
    StageShape part = stage;
    part.layers = layers;
    part.recompute =
        recompute == RecomputeKind::none ? costmodel::Recompute{} : costmodel::Recompute{recompute, layers};
    part.has_embedding = ends && stage.has_embedding;
    part.has_head = ends && layers == 0 && stage.has_head;
    return Launches(backbone, part, load, pass, storage, pricing, htask);
  };
  Launches outside = launches(0, true);
  OperatorGraph result;
  StageGraph graph(backbone, stage, result);
  graph.start(outside, pass);
  const auto layers = static_cast<std::int32_t>(stage.layers);
  if (pass == Pass::forward) {
    if (stage.has_embedding) graph.embed(outside);
    if (layers > 0) {
      const Launches inner = launches(1, false);
      for (std::int32_t layer = 0; layer < layers; ++layer) graph.forward_layer(inner, layer);
    }
    if (stage.has_head) graph.score(outside);
  } else {
    // Nothing needs the gradient of the embedding's rows.
    const std::int32_t bottom = stage.has_embedding && layers > 0 ? 1 : 0;
    const RecomputeKind kind = stage.recompute.kind;
    const auto of_layer = [&](std::int32_t layer) {
      return layer < stage.recompute.layers ? kind : RecomputeKind::none;
    };
    if (layers > bottom) {
      const Launches inner = launches(1, false), again = launches(1, false, kind);
      for (std::int32_t layer = layers; layer-- > bottom;)
        graph.backward_layer(of_layer(layer) == RecomputeKind::none ? inner : again, layer, of_layer(layer));
    }
    if (bottom > 0) graph.backward_layer(launches(1, true, of_layer(0)), 0, of_layer(0));
  }
  graph.finish(outside);
  return result;
}

}  // namespace braid::planner

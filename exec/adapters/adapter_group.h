#pragma once

#include "exec/adapters/adapter_kind.h"

namespace braid::exec {

/// The adapters of all tasks of a microbatch beside one frozen product of a layer, of whatever methods: each task's
/// rows go through its own (MuxTune §3.2: BaseOp batched, Adapters apart, Dispatch and Aggregate being the rows' places
/// in x and y), those of one method in one call. What each function does stands in adapter_kind.h. The probe hears of a
/// task's adapter as of one operator, once a pass.
class AdapterGroup {
 public:
  AdapterGroup(const LayerContext& context, const LayerWeights& weights, std::int32_t layer,
               costmodel::ModuleGroup group, const Batch& batch, LayerStash& stash)
      : context_(context), weights_(weights), layer_(layer), group_(group), batch_(batch), stash_(stash) {}

  /// Whether any task of the microbatch has a target here.
  bool any() const;
  /// Whether any changes what the product wrote, so that going back its gradient is another than the layer's.
  bool changes_output() const;

  /// What the shards have to sum up before `forward` where the product's inputs are split, empty where that is nothing;
  /// and those sums.
  Buffer give_shared();
  void take_shared(const Buffer& sums);

  void scale_inputs(kernels::Matrix x);
  /// On devices that join products, ahead of the frozen one: what methods do then, of which `added` is left.
  void forward_ahead(kernels::ConstMatrix x, kernels::Matrix y, Products& added);
  void forward(kernels::ConstMatrix x, kernels::Matrix y);
  void forward_sum(kernels::Matrix y);

  void backward_output(kernels::ConstMatrix x, kernels::Matrix dy);
  void backward_ahead(kernels::ConstMatrix x, kernels::ConstMatrix dy, kernels::Matrix dx, Products& added);
  void backward(kernels::ConstMatrix x, kernels::ConstMatrix dy, kernels::Matrix dx);

 private:
  /// Calls work(kind, rows) for each task with a target here, and counts its seconds.
  template <typename Work>
  void visit(const Work& work);
  /// Calls work(kind, all its tasks with a target here) for each method that is ahead of the frozen product, or not,
  /// and counts each task's share of the seconds.
  template <typename Work>
  void visit_methods(bool ahead, const Work& work);
  void tell(costmodel::Pass pass);
  costmodel::OperatorCall call(const TaskSpan& span, costmodel::Pass pass) const;
  Adapter& adapter_of(const TaskSpan& span) const { return *context_.adapters[static_cast<std::size_t>(span.task)]; }

  const LayerContext& context_;
  const LayerWeights& weights_;
  std::int32_t layer_;
  costmodel::ModuleGroup group_;
  const Batch& batch_;
  LayerStash& stash_;
};

}  // namespace braid::exec

#pragma once

#include "exec/adapters/products.h"
#include "exec/decoder_layer.h"

namespace braid::exec {

/// A task's rows of a microbatch beside a frozen product of a layer, and all that its adapter works with. On a shard
/// the product's inputs and outputs are the shard's; where its inputs are split, y is a part of a sum.
struct AdapterRows {
  const LayerContext& context;
  std::int32_t layer;
  costmodel::ModuleGroup group;
  const Batch& batch;
  const TaskSpan& span;
  const LayerWeights& weights;
  Adapter& adapter;
  AdapterKept& kept;

  const kernels::Kernels& kernels() const { return context.pool.device().kernels(); }
  const kernels::FrozenLinear& product() const { return weights.product(group); }
  /// The probability that a number of the adapter's input is dropped.
  double dropout() const { return context.evaluates ? 0 : adapter.shape().dropout; }
  std::int64_t count() const { return span.last - span.first; }
};

/// The task's rows of a matrix of the whole microbatch; none where that has none.
template <typename M>
M rows_of(const AdapterRows& rows, M matrix) {
  return matrix.rows > 0 ? matrix.row_range(rows.span.first, rows.span.last) : M();
}

/// A method of adapters. Each is one file; what it costs stands in costmodel/shapes/adapter.h and work/, what it trains
/// in parameters.h, and its file in files/peft.h.
///
/// Forward, x [T, in] and y [T, out] being what the frozen product reads and writes: `scale_input`, the product,
/// `forward`, the sum of the shards' parts where inputs are split, `forward_sum`. Backward, dy and dx being their
/// gradients: `backward_sum`, `backward_output`, the product, `backward`, `backward_input`. What a method does not do
/// it leaves out. Gradients add to the adapter's; every shard adds its own part.
class AdapterKind {
 public:
  virtual ~AdapterKind() = default;

  /// Where the product's inputs are split over shards: how many numbers these have to sum up before `forward`, the same
  /// on each; then each one's part of them, and what they sum up to.
  virtual std::int64_t shared_numbers(const AdapterRows& /*rows*/) const { return 0; }
  virtual void give_shared(const AdapterRows& /*rows*/, kernels::Vector /*mine*/) const {}
  virtual void take_shared(const AdapterRows& /*rows*/, kernels::ConstVector /*sums*/) const {}

  virtual void scale_input(const AdapterRows& /*rows*/, kernels::Matrix /*x*/) const {}
  virtual void forward(const AdapterRows& /*rows*/, kernels::ConstMatrix /*x*/, kernels::Matrix /*y*/) const {}
  /// `forward` of all tasks of the method, whose rows of the whole x and y stand in their spans; and `backward`.
  virtual void forward_all(std::span<const AdapterRows> tasks, kernels::ConstMatrix x, kernels::Matrix y) const;
  virtual void backward_all(std::span<const AdapterRows> tasks, kernels::ConstMatrix x, kernels::ConstMatrix dy,
                            kernels::Matrix dx) const;
  virtual void forward_sum(const AdapterRows& /*rows*/, kernels::Matrix /*y*/) const {}

  /// On devices that join products: whether all of these tasks' `forward_all` and `backward_all` is done ahead of the
  /// frozen product but for products with beta 1 that are added to what that makes; and these instead of those then.
  virtual bool joins(std::span<const AdapterRows> /*tasks*/) const { return false; }
  virtual void forward_ahead(std::span<const AdapterRows> /*tasks*/, kernels::ConstMatrix /*x*/, kernels::Matrix /*y*/,
                             Products& /*added*/) const {}
  virtual void backward_ahead(std::span<const AdapterRows> /*tasks*/, kernels::ConstMatrix /*x*/,
                              kernels::ConstMatrix /*dy*/, kernels::Matrix /*dx*/, Products& /*added*/) const {}

  virtual void backward_sum(const AdapterRows& /*rows*/, kernels::Matrix /*dy*/) const {}
  /// Turns the gradient of what the adapter made of the product's output into that output's; `x` is what the product
  /// read.
  virtual void backward_output(const AdapterRows& /*rows*/, kernels::ConstMatrix /*x*/, kernels::Matrix /*dy*/) const {}
  /// `dy` is the gradient of the product's output; adds the input's to `dx` unless that has no rows.
  virtual void backward(const AdapterRows& /*rows*/, kernels::ConstMatrix /*x*/, kernels::ConstMatrix /*dy*/,
                        kernels::Matrix /*dx*/) const {}
  virtual void backward_input(const AdapterRows& /*rows*/, kernels::ConstMatrix /*x*/, kernels::Matrix /*dx*/) const {}
};

/// Null for prefix tuning, which is beside no product.
const AdapterKind* kind_of(costmodel::AdapterMethod method);

const AdapterKind& lora_kind();
const AdapterKind& dora_kind();
const AdapterKind& vera_kind();
const AdapterKind& ia3_kind();
const AdapterKind& bottleneck_kind();
const AdapterKind& diff_pruning_kind();

}  // namespace braid::exec

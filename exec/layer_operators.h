#pragma once

#include <optional>

#include "exec/adapters/adapter_group.h"
#include "exec/decoder_layer.h"
#include "exec/norm.h"

namespace braid::exec {

/// The operators of one layer on one microbatch: names shapes once, and tells the probe of each. What a pass does and
/// when is its own matter (decoder_layer.cpp).
class LayerOperators {
 public:
  LayerOperators(const LayerContext& context, const LayerWeights& weights, std::int32_t layer, LayerBatch batch,
                 LayerStash& stash);

  const kernels::Kernels& kernels() const { return kernels_; }
  /// The slot's part of the stash as a matrix.
  kernels::Matrix slot(costmodel::Slot slot) const { return matrix(stash_.at(slot), slot); }
  kernels::Matrix matrix(const Buffer& buffer, costmodel::Slot slot) const {
    return buffer.matrix(rows_, width(shard(), slot));
  }
  Buffer take(costmodel::Slot slot) const { return context_.pool.take(rows_ * width(shard(), slot)); }
  /// Whether any task of the microbatch has an adapter beside that product.
  bool adapts(costmodel::ModuleGroup group) const;

  /// Whether any has keys and values before its sequences.
  bool has_prefix() const;

  /// What shards have to sum up before the linear layer goes forward, nothing in most cases; and that they have.
  std::optional<kernels::Matrix> shared_by_adapters(const costmodel::LayerOp& op);
  void take_shared(const costmodel::LayerOp& op);
  /// Writes the operator's slot in the stash from those that it reads, and keeps what its way back reads beside them.
  void forward(const costmodel::LayerOp& op);
  /// The same result again, into a buffer apart where the stash has none.
  Buffer forward_again(const costmodel::LayerOp& op);
  /// What adapters do to a linear layer's output once its shards' parts have met.
  void finish_linear(const costmodel::LayerOp& op);
  /// Whether adapters change that product's output, and its gradient with it.
  bool changes_output(costmodel::ModuleGroup group) const;
  /// Turns the gradient of the layer's output into that of its product's; `input` is what stands in op.from.
  void output_backward(const costmodel::LayerOp& op, kernels::ConstMatrix input, kernels::Matrix d_to);
  /// Adds `d_to` through the operator into `d_from`. A linear layer's adapters read `input`, what stands in op.from;
  /// into an empty `d_from` no gradient goes. An operator in place has one gradient.
  void linear_backward(const costmodel::LayerOp& op, kernels::ConstMatrix input, kernels::Matrix d_to,
                       kernels::Matrix d_from);
  void backward(const costmodel::LayerOp& op, kernels::Matrix d_to, kernels::Matrix d_from);

  /// Leaves in the stash what a layer that is recomputed in full keeps.
  void keep_input_alone();

  LayerStash& stash() { return stash_; }
  int shards() const { return context_.shard.count(); }

 private:
  /// The parts of a fused matrix.
  struct Qkv {
    kernels::Matrix q, k, v, qk, kv;
  };
  /// What attention works on: the sequences' rows, and views of their earlier chunks.
  struct Sequences {
    std::vector<std::vector<kernels::EarlierKeys>> earlier;
    std::vector<kernels::SequenceRows> rows;
    std::vector<Buffer> prefix_gradients;  // of the keys and values that the tasks' adapters put before them
  };
  /// What the head norms keep, apart for queries and keys.
  struct HeadNorms {
    kernels::Matrix q, k, q_scale, k_scale;
  };

  const costmodel::BackboneShape& shard() const { return context_.shard.part(); }
  template <typename Work>
  void run(const costmodel::LayerOp& op, costmodel::Pass pass, costmodel::OperatorShape shape, const Work& work) const;
  template <typename Work>
  void run_attention(costmodel::Pass pass, const Work& work) const;
  /// What the norm that writes the slot keeps of each row.
  kernels::Matrix statistics(costmodel::Slot slot) const {
    return stash_.statistics[static_cast<std::size_t>(slot)].matrix(rows_, norm_.statistics());
  }
  kernels::Activation activation() const;
  Qkv split(kernels::Matrix qkv) const;
  kernels::EarlierKeys keys_of(const EarlierChunk& chunk, costmodel::Pass pass) const;
  Sequences sequences(costmodel::Pass pass) const;
  kernels::Matrix prefix_of(const SampleRows& rows, Adapter::Part part) const;
  kernels::EarlierKeys prefix_keys(kernels::Matrix prefix, const Buffer& gradients) const;
  void add_prefix_gradients(const Sequences& all) const;
  HeadNorms head_norms() const;
  kernels::AttentionShape attention_shape() const { return {shard().heads, shard().kv_heads, shard().head_dim}; }
  costmodel::OperatorShape head_shape() const { return {shard().heads, shard().kv_heads, shard().head_dim}; }
  float rope_scale() const { return static_cast<float>(shard().rope_scaling.attention_factor); }

  AdapterGroup adapters(costmodel::ModuleGroup group) const {
    return {context_, weights_, layer_, group, batch_.batch, stash_};
  }
  void linear_forward(const costmodel::LayerOp& op);
  void normalize_heads(const costmodel::LayerOp& op);
  void attend(const costmodel::LayerOp& op);
  void attend_backward(const costmodel::LayerOp& op, kernels::Matrix d_attended, kernels::Matrix d_qkv);

  LayerContext context_;
  const kernels::Kernels& kernels_;
  Norm norm_;
  const LayerWeights& weights_;
  std::int32_t layer_;
  LayerBatch batch_;
  LayerStash& stash_;
  std::int64_t rows_;
  Buffer shared_;  // that adapters have the shards sum up
};

}  // namespace braid::exec

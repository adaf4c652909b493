#pragma once

#include "exec/adapters/targets.h"

namespace braid::exec {

/// A LoRA adapter's two products beside a frozen one; DoRA has them too. Inputs are dropped by each module for itself:
/// by its products, on devices whose products do that; else the masked input is made first, and what reads it at once,
/// as it is not kept.
class LowRank {
 public:
  explicit LowRank(const AdapterRows& rows) : rows_(rows), kernels_(rows.kernels()) {}

  /// Sum of the targets' r, and [count, that].
  std::int64_t width() const;
  Buffer take_low_rank(std::int64_t count) const;

  /// low_rank [T, width] = A dropout(x), and y += scaling · B low_rank.
  void down(kernels::ConstMatrix x, kernels::Matrix low_rank, Products& products) const;
  void up(kernels::ConstMatrix low_rank, kernels::Matrix y, Products& products) const;
  /// Adds B's gradient, and makes that of low_rank.
  void outputs_backward(kernels::ConstMatrix dy, kernels::Matrix d_low_rank, Products& products) const;
  /// Adds A's gradient, and as `added` products the input's to `dx` unless that has no rows.
  void inputs_backward(kernels::ConstMatrix x, kernels::ConstMatrix d_low_rank, kernels::Matrix dx, Products& products,
                       Products& added) const;

  void down(kernels::ConstMatrix x, kernels::Matrix low_rank) const;
  /// Both ways back.
  void backward(kernels::ConstMatrix x, kernels::ConstMatrix dy, kernels::Matrix dx) const;

  /// Whether all that is dropped is dropped in products.
  bool only_products() const { return rows_.dropout() == 0 || drops_in_products(); }

 private:
  /// gradient += scale · aᵀ b: as one of the products, or where sums are exact at once.
  void add_gradient(float scale, kernels::ConstMatrix a, kernels::ConstMatrix b, kernels::Matrix gradient,
                    Products& products) const;
  /// Exact sums are no products.
  bool drops_in_products() const {
    return rows_.context.pool.device().drops_in_products() && !rows_.adapter.has_exact_sums();
  }
  /// The product, as the module's dropout has it.
  kernels::MatmulCall dropping(kernels::MatmulCall call, kernels::Dropped which, costmodel::Module module) const;
  /// What the shard computes with: of A [r, in] its inputs, of B [out, r] some of its outputs. The numbers of all
  /// shards' parts are summed up as their gradients are, each is of one shard or a part of its own.
  kernels::Matrix stacked_a(Adapter::Part part) const;
  kernels::Matrix a(Adapter::Part part, costmodel::Module module) const;
  kernels::Matrix b(Adapter::Part part, costmodel::Module module, Share outputs) const;

  const AdapterRows& rows_;
  const kernels::Kernels& kernels_;
};

}  // namespace braid::exec

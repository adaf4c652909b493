#pragma once

#include "exec/adapters/targets.h"

namespace braid::exec {

/// A LoRA adapter's two products beside a frozen one; DoRA has them too.
class LowRank {
 public:
  explicit LowRank(const AdapterRows& rows) : rows_(rows), kernels_(rows.kernels()) {}

  /// low_rank [T, sum of r] = A dropout(x), and y += scaling · B low_rank.
  void down(kernels::ConstMatrix x, kernels::Matrix low_rank) const;
  void up(kernels::ConstMatrix low_rank, kernels::Matrix y) const;
  /// Adds the gradients of A and B, and the input's to `dx` unless that has no rows.
  void backward(kernels::ConstMatrix x, kernels::ConstMatrix dy, kernels::Matrix dx) const;

 private:
  /// What the shard computes with: of A [r, in] its inputs, of B [out, r] some of its outputs. The numbers of all
  /// shards' parts are summed up as their gradients are, each is of one shard or a part of its own.
  kernels::Matrix stacked_a(Adapter::Part part) const;
  kernels::Matrix a(Adapter::Part part, costmodel::Module module) const;
  kernels::Matrix b(Adapter::Part part, costmodel::Module module, Share outputs) const;

  const AdapterRows& rows_;
  const kernels::Kernels& kernels_;
};

}  // namespace braid::exec

#pragma once

#include "exec/decoder_layer.h"

namespace braid::exec {

/// The adapters of one module group in one layer, as a layer calls them: `x` [T, in] is what the frozen product read,
/// `y` [T, sum of the group's outputs] what it wrote, the outputs of its modules side by side. On a shard `in` and the
/// outputs are the shard's; where its inputs are split, y is a part of a sum.
class LoraGroup {
 public:
  LoraGroup(const LayerContext& context, std::int32_t layer, costmodel::ModuleGroup group, const Batch& batch)
      : context_(context), layer_(layer), group_(group), batch_(batch) {}

  /// Whether any task of the microbatch has a target here.
  bool any() const;

  /// y += scaling · B A dropout(x); keeps A dropout(x) in `stash`.
  void forward(kernels::ConstMatrix x, kernels::Matrix y, LayerStash& stash) const;

  /// Adds the gradients of A and B, and the input's to `dx` unless that has no rows.
  void backward(kernels::ConstMatrix x, kernels::ConstMatrix dy, kernels::Matrix dx, LayerStash& stash) const;

 private:
  /// Rows of B and the columns of y that they give.
  struct Outputs {
    Share rows;
    std::int64_t column = 0;
    std::int64_t last_column() const { return column + rows.count(); }
  };
  struct Target {
    costmodel::Module module;
    std::vector<Outputs> outputs;  // of the shard
    std::int64_t first = 0;        // of its columns between A and B, [first, last)
    std::int64_t last = 0;
  };

  const kernels::Kernels& kernels() const { return context_.pool.device().kernels(); }
  /// What the shard computes with: of A [r, in] its inputs, of B [out, r] some of its outputs. The numbers of all
  /// shards' parts are summed up as their gradients are, each is of one shard or a part of its own.
  kernels::Matrix stacked_a(Adapter& adapter, Adapter::Part part) const;
  kernels::Matrix a(Adapter& adapter, Adapter::Part part, costmodel::Module module) const;
  kernels::Matrix b(Adapter& adapter, Adapter::Part part, costmodel::Module module, Share rows) const {
    return adapter.b(part, layer_, module).row_range(rows.first, rows.last);
  }
  std::vector<Target> targets_of(const Adapter& adapter) const;
  /// Columns between A and B.
  std::int64_t width(const TaskSpan& span) const;
  void forward_span(const TaskSpan& span, kernels::ConstMatrix x, kernels::Matrix y, kernels::Matrix low_rank) const;
  void backward_span(const TaskSpan& span, kernels::ConstMatrix x, kernels::ConstMatrix dy, kernels::Matrix dx,
                     kernels::Matrix low_rank) const;
  Buffer dropped(const TaskSpan& span, costmodel::Module module, kernels::ConstMatrix x) const;
  void drop_into(const TaskSpan& span, costmodel::Module module, kernels::ConstMatrix x, bool accumulate,
                 kernels::Matrix y) const;
  costmodel::OperatorCall call(const TaskSpan& span, costmodel::Pass pass) const;

  const LayerContext& context_;
  std::int32_t layer_;
  costmodel::ModuleGroup group_;
  const Batch& batch_;
};

}  // namespace braid::exec

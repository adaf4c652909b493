#pragma once

#include "costmodel/shapes/backbone.h"
#include "exec/layer_weights.h"
#include "kernels/kernels.h"

namespace braid::exec {

/// The norm that a backbone's family has between its products: RMS, or of layers. x, y [T, H] and their gradients are
/// as kernels/rms_norm.h and kernels/layer_norm.h say; `statistics` [T, statistics()] is what the way back reads.
class Norm {
 public:
  Norm(const costmodel::BackboneShape& backbone, const kernels::Kernels& kernels)
      : rms_(backbone.gated()), epsilon_(static_cast<float>(backbone.norm_epsilon)), kernels_(kernels) {}

  /// Numbers that a row keeps.
  std::int64_t statistics() const { return rms_ ? 1 : 2; }

  void forward(kernels::ConstMatrix x, const NormWeights& weights, kernels::Matrix y,
               kernels::Matrix statistics) const {
    if (rms_) return kernels_.rms_norm_forward(x, weights.weight.view(), epsilon_, y, column(statistics));
    kernels_.layer_norm_forward(x, weights.weight.view(), weights.bias.view(), epsilon_, y, statistics);
  }
  /// The same bits again from what an earlier pass kept.
  void again(kernels::ConstMatrix x, const NormWeights& weights, kernels::Matrix statistics, kernels::Matrix y) const {
    if (rms_) return kernels_.rms_norm_again(x, weights.weight.view(), column(statistics), y);
    kernels_.layer_norm_again(x, weights.weight.view(), weights.bias.view(), statistics, y);
  }
  /// Adds to dx.
  void backward(kernels::ConstMatrix dy, kernels::ConstMatrix x, const NormWeights& weights, kernels::Matrix statistics,
                kernels::Matrix dx) const {
    if (rms_) return kernels_.rms_norm_backward(dy, x, weights.weight.view(), column(statistics), dx);
    kernels_.layer_norm_backward(dy, x, weights.weight.view(), statistics, dx);
  }

 private:
  static kernels::Vector column(kernels::Matrix statistics) { return {statistics.data, statistics.rows}; }

  bool rms_;
  float epsilon_;
  const kernels::Kernels& kernels_;
};

}  // namespace braid::exec

#pragma once

#include <cstdint>
#include <span>

#include "kernels/matrix.h"

namespace braid::kernels {

/// One step of AdamW (Loshchilov and Hutter 2019) as PyTorch takes it, in f32, with the bias corrections in double:
/// p −= lr · decay · p; m = β₁ m + (1−β₁) g; v = β₂ v + (1−β₂) g²; p −= lr / (1−β₁ᵗ) · m / (sqrt(v) / sqrt(1−β₂ᵗ) + ε).
/// The gradient is multiplied by `gradient_scale` first (clipping).
struct AdamWStep {
  double learning_rate = 0.0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
  double gradient_scale = 1.0;
  std::int64_t step = 1;  ///< t, from 1
};

using AdamW = void(const AdamWStep& step, ConstVector gradient, Vector parameter, Vector first_moment,
                   Vector second_moment);

/// One of several in one call.
struct AdamWCall {
  AdamWStep step;
  ConstVector gradient;
  Vector parameter, first_moment, second_moment;
};
/// Each as `adamw` takes it, to the bit; none touches another's numbers.
using AdamWGroup = void(std::span<const AdamWCall> calls);

namespace reference {
AdamW adamw;
AdamWGroup adamw_group;
}  // namespace reference
namespace cpu {
AdamW adamw;
AdamWGroup adamw_group;
}  // namespace cpu

/// The group in one launch.
namespace cuda {
AdamW adamw;
AdamWGroup adamw_group;
}  // namespace cuda

}  // namespace braid::kernels

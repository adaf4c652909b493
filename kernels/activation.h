#pragma once

#include "kernels/matrix.h"

namespace braid::kernels {

/// What a feed-forward layer does between its products.
///
/// With a gate x [T, 2F] holds gates in its first F columns and what they let through, ups, in the rest; y [T, F] is
/// f(gate) · up. Without one x and y are [T, F], y = f(x).
enum class Activation {
  swiglu,  ///< f(g) = silu(g) = g / (1 + exp(−g)), with a gate
  geglu,   ///< f = gelu, with a gate
  gelu,    ///< f(x) = x / 2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), GPT-2's
  silu,    ///< without a gate: bottleneck adapters
  relu     ///< f(x) = max(0, x)
};
constexpr bool has_gate(Activation kind) {
  return kind == Activation::swiglu || kind == Activation::geglu;
}

using ActivationForward = void(Activation kind, ConstMatrix x, Matrix y);
/// Overwrites dx, as large as x, which may be x itself.
using ActivationBackward = void(Activation kind, ConstMatrix dy, ConstMatrix x, Matrix dx);

namespace reference {
ActivationForward activation_forward;
ActivationBackward activation_backward;
}  // namespace reference
namespace cpu {
ActivationForward activation_forward;
ActivationBackward activation_backward;
}  // namespace cpu

namespace cuda {
ActivationForward activation_forward;
ActivationBackward activation_backward;
}  // namespace cuda

}  // namespace braid::kernels

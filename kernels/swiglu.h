#pragma once

#include "kernels/matrix.h"

namespace braid::kernels {

/// y = silu(gate) · up, silu(g) = g / (1 + exp(−g)). gate_up [T, 2F] holds gate in its first F columns, up in the rest;
/// y [T, F]. The backward pass overwrites d_gate_up [T, 2F], which may be gate_up itself.
using SwigluForward = void(ConstMatrix gate_up, Matrix y);
using SwigluBackward = void(ConstMatrix dy, ConstMatrix gate_up, Matrix d_gate_up);

namespace reference {
SwigluForward swiglu_forward;
SwigluBackward swiglu_backward;
}  // namespace reference
namespace cpu {
SwigluForward swiglu_forward;
SwigluBackward swiglu_backward;
}  // namespace cpu

}  // namespace braid::kernels

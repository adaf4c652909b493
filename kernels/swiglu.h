#pragma once

#include "kernels/matrix.h"

namespace braid::kernels {

/// y = silu(gate) · up, silu(g) = g / (1 + exp(−g)). gate_up [T, 2F] holds gate in its first F columns, up in the rest;
/// y [T, F]. The backward pass overwrites d_gate_up [T, 2F], which may be gate_up itself.
namespace reference {
void swiglu_forward(ConstMatrix gate_up, Matrix y);
void swiglu_backward(ConstMatrix dy, ConstMatrix gate_up, Matrix d_gate_up);
}  // namespace reference

namespace cpu {
void swiglu_forward(ConstMatrix gate_up, Matrix y);
void swiglu_backward(ConstMatrix dy, ConstMatrix gate_up, Matrix d_gate_up);
}  // namespace cpu

}  // namespace braid::kernels

#pragma once

#include <span>

#include "kernels/matrix.h"

namespace braid::kernels {

/// y += x. x, y [T, H].
/// squared_norm: Σ x², summed in double in an order that depends on the length alone.
namespace reference {
void add(ConstMatrix x, Matrix y);
double squared_norm(std::span<const float> x);
}  // namespace reference

namespace cpu {
void add(ConstMatrix x, Matrix y);
double squared_norm(std::span<const float> x);
}  // namespace cpu

}  // namespace braid::kernels

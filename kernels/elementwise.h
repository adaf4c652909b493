#pragma once

#include <span>

#include "kernels/matrix.h"

namespace braid::kernels {

/// y += x. x, y [T, H].
/// squared_norm: Σ x², summed in double in an order that depends on the length alone.
using Add = void(ConstMatrix x, Matrix y);
using SquaredNorm = double(ConstVector x);

namespace reference {
Add add;
SquaredNorm squared_norm;
}  // namespace reference
namespace cpu {
Add add;
SquaredNorm squared_norm;
}  // namespace cpu

}  // namespace braid::kernels

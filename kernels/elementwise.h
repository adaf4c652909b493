#pragma once

#include <span>

#include "kernels/matrix.h"

namespace braid::kernels {

/// y += x. x, y [T, H].
using Add = void(ConstMatrix x, Matrix y);
/// y = x, which lies apart from y.
using Copy = void(ConstMatrix x, Matrix y);
/// y = value everywhere.
using Fill = void(float value, Matrix y);
/// y = factor · x, or y += that where it accumulates. x and y may be one.
using Scale = void(float factor, ConstMatrix x, bool accumulate, Matrix y);
/// sums[i] = Σ x² over parts[i], in double, in an order that depends on its length alone.
using SquaredNorms = void(std::span<const ConstVector> parts, BasicVector<double> sums);

namespace reference {
Add add;
Copy copy;
Fill fill;
Scale scale;
SquaredNorms squared_norms;
}  // namespace reference
namespace cpu {
Add add;
Copy copy;
Fill fill;
Scale scale;
SquaredNorms squared_norms;
}  // namespace cpu

namespace cuda {
Add add;
Copy copy;
Fill fill;
Scale scale;
SquaredNorms squared_norms;
}  // namespace cuda

}  // namespace braid::kernels

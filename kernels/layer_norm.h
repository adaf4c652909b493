#pragma once

#include <span>

#include "kernels/matrix.h"

namespace braid::kernels {

/// y = (x − mean) · scale · weight + bias, scale = 1 / sqrt(mean((x − mean)²) + epsilon) of each row (Ba et al. 2016).
/// x, y [T, H], weight, bias [H]; statistics [T, 2], the rows' means and scales, is kept for the backward pass.
///
/// The backward pass adds the gradient through the norm to dx: with g = dy · weight and n = (x − mean) · scale,
/// dx += scale · (g − mean(g) − n · mean(g · n)).
using LayerNormForward = void(ConstMatrix x, ConstVector weight, ConstVector bias, float epsilon, Matrix y,
                              Matrix statistics);
/// The same y with the statistics of an earlier forward pass: the same bits as then.
using LayerNormAgain = void(ConstMatrix x, ConstVector weight, ConstVector bias, ConstMatrix statistics, Matrix y);
using LayerNormBackward = void(ConstMatrix dy, ConstMatrix x, ConstVector weight, ConstMatrix statistics, Matrix dx);

namespace reference {
LayerNormForward layer_norm_forward;
LayerNormAgain layer_norm_again;
LayerNormBackward layer_norm_backward;
}  // namespace reference
namespace cpu {
LayerNormForward layer_norm_forward;
LayerNormAgain layer_norm_again;
LayerNormBackward layer_norm_backward;
}  // namespace cpu

namespace cuda {
LayerNormForward layer_norm_forward;
LayerNormAgain layer_norm_again;
LayerNormBackward layer_norm_backward;
}  // namespace cuda

}  // namespace braid::kernels

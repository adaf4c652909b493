#pragma once

#include <span>

#include "kernels/matrix.h"

namespace braid::kernels {

/// y = x · scale · weight, scale = 1 / sqrt(mean(x²) + epsilon) of each row. x, y [T, H], weight [H], scale [T] (kept
/// for the backward pass).
///
/// The backward pass adds the gradient through the norm to dx: dx += scale · (dy · weight − x · scale² · mean(dy ·
/// weight · x)).
namespace reference {
void rms_norm_forward(ConstMatrix x, std::span<const float> weight, float epsilon, Matrix y, std::span<float> scale);
void rms_norm_backward(ConstMatrix dy, ConstMatrix x, std::span<const float> weight, std::span<const float> scale,
                       Matrix dx);
}  // namespace reference

namespace cpu {
void rms_norm_forward(ConstMatrix x, std::span<const float> weight, float epsilon, Matrix y, std::span<float> scale);
void rms_norm_backward(ConstMatrix dy, ConstMatrix x, std::span<const float> weight, std::span<const float> scale,
                       Matrix dx);
/// y = x · scale · weight with the scale of an earlier forward pass: the same bits as then.
void rms_norm_again(ConstMatrix x, std::span<const float> weight, std::span<const float> scale, Matrix y);
}  // namespace cpu

}  // namespace braid::kernels

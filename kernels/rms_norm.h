#pragma once

#include <span>

#include "kernels/matrix.h"

namespace braid::kernels {

/// y = x · scale · weight, scale = 1 / sqrt(mean(x²) + epsilon) of each row. x, y [T, H], weight [H], scale [T] (kept
/// for the backward pass).
///
/// The backward pass adds the gradient through the norm to dx: dx += scale · (dy · weight − x · scale² · mean(dy ·
/// weight · x)).
///
/// Head norms do the same to each head of D columns of x [T, heads · D], in place, with one weight [D] for all of them:
/// `before` gets what x was, and `scale` is [T, heads]. Their backward pass turns d, the gradient of the result, into
/// that of x.
using RmsNormForward = void(ConstMatrix x, ConstVector weight, float epsilon, Matrix y, Vector scale);
/// y = x · scale · weight with the scale of an earlier forward pass: the same bits as then.
using RmsNormAgain = void(ConstMatrix x, ConstVector weight, ConstVector scale, Matrix y);
using RmsNormBackward = void(ConstMatrix dy, ConstMatrix x, ConstVector weight, ConstVector scale, Matrix dx);
using HeadNormForward = void(Matrix x, ConstVector weight, float epsilon, Matrix before, Matrix scale);
using HeadNormBackward = void(Matrix d, ConstMatrix before, ConstVector weight, ConstMatrix scale);

namespace reference {
RmsNormForward rms_norm_forward;
RmsNormAgain rms_norm_again;
RmsNormBackward rms_norm_backward;
HeadNormForward head_norm_forward;
HeadNormBackward head_norm_backward;
}  // namespace reference
namespace cpu {
RmsNormForward rms_norm_forward;
RmsNormAgain rms_norm_again;
RmsNormBackward rms_norm_backward;
HeadNormForward head_norm_forward;
HeadNormBackward head_norm_backward;
}  // namespace cpu

namespace cuda {
RmsNormForward rms_norm_forward;
RmsNormAgain rms_norm_again;
RmsNormBackward rms_norm_backward;
HeadNormForward head_norm_forward;
HeadNormBackward head_norm_backward;
}  // namespace cuda

}  // namespace braid::kernels

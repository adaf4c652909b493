#pragma once

#include "kernels/matrix.h"

namespace braid::kernels {

/// What s B A adds to the squared norm of each row of W + s B A (DoRA, Liu et al. 2024):
///   squares[i] += 2 s b_i · (A W_i) + s² b_i · (A Aᵀ) b_i.
/// b [N, r] are rows of B, `with_weight` [r, N] is A Wᵀ + bias as a frozen layer makes it of A's rows, bias [N] or
/// empty, `inner` [r, r] is A Aᵀ, squares [N].
using LowRankSquares = void(float s, ConstMatrix b, ConstMatrix with_weight, ConstVector bias, ConstMatrix inner,
                            Vector squares);
/// roots[i] = 1 / √max(squares[i], 1e-30). Both [N], and may be one.
using InverseRoots = void(ConstVector squares, Vector roots);

namespace reference {
LowRankSquares low_rank_squares;
InverseRoots inverse_roots;
}  // namespace reference
namespace cpu {
LowRankSquares low_rank_squares;
InverseRoots inverse_roots;
}  // namespace cpu

namespace cuda {
LowRankSquares low_rank_squares;
InverseRoots inverse_roots;
}  // namespace cuda

}  // namespace braid::kernels

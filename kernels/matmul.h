#pragma once

#include "kernels/matrix.h"

namespace braid::kernels {

enum class Transpose { no, yes };

/// c = alpha · op(a) op(b) + beta · c, beta 0 or 1 (0 never reads c). op(a) [M, K], op(b) [K, N], c [M, N]; c overlaps
/// neither a nor b. Empty M or N does nothing; empty K counts as zeros.
using Matmul = void(float alpha, ConstMatrix a, Transpose a_transpose, ConstMatrix b, Transpose b_transpose, float beta,
                    Matrix c);

namespace reference {
Matmul matmul;
}

/// For weights that change, and so are not packed: adapters. Each element is summed in the order of K, whatever the
/// shape: rows do not depend on M, on their place, on strides, or on the number of threads. Nothing is compiled or kept
/// by shape.
namespace cpu {
Matmul matmul;
}

}  // namespace braid::kernels

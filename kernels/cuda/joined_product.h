#pragma once

#include <span>

#include "kernels/matmul.h"

/// A frozen product to whose sums those of adapters are added before they are rounded and written, so that no second
/// pass reads and writes what it makes: y [T, out] = x Wᵀ + bias and going back dx = dy W, each + Σ α S B. For sm_90a.
namespace braid::kernels::cuda {

/// Whether joined_product makes it on this thread's device: x, W and y are of bf16, `added` are products of y's parts
/// with beta 1 which lie as an adapter's do, W [out, in] going forward and back, and all lie on 16 bytes.
bool can_join(ConstMatrix x, ConstMatrix weight, Transpose transpose, ConstMatrix y, std::span<const MatmulCall> added);

/// y = x Wᵀ + bias where W is taken across (Transpose::yes), else x W; and what is `added`, one after another where
/// they meet. Of each number of y the order of its sum depends on K and on `added` alone.
void joined_product(ConstMatrix x, ConstMatrix weight, Transpose transpose, ConstVector bias, Matrix y,
                    std::span<const MatmulCall> added);

}  // namespace braid::kernels::cuda

#pragma once

#include "kernels/matmul.h"

namespace braid::kernels::cuda {

/// Whether a product is made by tensor cores, of numbers rounded to bf16: where any of its matrices is of bf16.
bool by_tensor_cores(const MatmulCall& call);

/// Products that are, in one launch, or two where long sums are made in parts. The sum of an element is made in an
/// order that depends on K and on the smaller side of the product alone.
void tensor_matmul_group(std::span<const MatmulCall> calls);

}  // namespace braid::kernels::cuda

#pragma once

#include <cstdint>

#include "kernels/matmul.h"

namespace braid::kernels::cpu {

/// The numbers that pack_panels writes for op(b) [depth, columns].
std::int64_t packed_numbers(std::int64_t depth, std::int64_t columns);

/// op(b) in panels of columns, each [depth, width] with its width rounded up to lanes, as matmul reads it. `to` is
/// aligned to a cache line.
void pack_panels(ConstMatrix b, Transpose b_transpose, float* to);

/// c = a op(b) + beta · c, as matmul would have it, where pack_panels wrote `panels` from b. a [T, depth],
/// c [T, columns].
void multiply_panels(ConstMatrix a, const float* panels, float beta, Matrix c);

}  // namespace braid::kernels::cpu

#pragma once

#include <cstdint>
#include <span>

#include "kernels/matrix.h"

namespace braid::kernels {

/// y[t][i] = x[t][i] / (1 − probability) where kept, 0 where dropped. Element i of row t is decided by
/// philox(counter {j / 4, positions[t], low and high word of samples[t]}, key)[j % 4], j = first_column + i, alone:
/// dropped when that word is below probability · 2³². So a row's mask does not depend on where it stands, and the
/// backward pass is the same call on the gradient. x, y [T, H] and may be one matrix; positions, samples [T]; 0 ≤
/// probability < 1.
///
/// With `accumulate`, y[t][i] += the same instead.
struct DropoutRows {
  std::span<const std::int32_t> positions;
  std::span<const std::int64_t> samples;
  std::uint64_t key = 0;
  float probability = 0.0F;
  std::int64_t first_column = 0;  ///< of x, where it is a part of a wider matrix
};

using Dropout = void(const DropoutRows& rows, ConstMatrix x, bool accumulate, Matrix y);

namespace reference {
Dropout dropout;
}
namespace cpu {
Dropout dropout;
}

namespace cuda {
Dropout dropout;
}  // namespace cuda

}  // namespace braid::kernels

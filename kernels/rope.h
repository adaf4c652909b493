#pragma once

#include <cstdint>
#include <span>

#include "kernels/matrix.h"

namespace braid::kernels {

/// Rotary embedding in place, Hugging Face's half-split pairing: (x[i], x[i + D/2]) of each head turns by
/// positions[t] · frequencies[i] and is multiplied by `scale`. x [T, heads · D], positions [T], frequencies [D/2]. The
/// backward pass turns back, and multiplies as the forward pass does.
using Rope = void(Matrix x, std::int64_t head_dim, std::span<const std::int32_t> positions, ConstVector frequencies,
                  float scale);

namespace reference {
Rope rope_forward;
Rope rope_backward;
}  // namespace reference
namespace cpu {
Rope rope_forward;
Rope rope_backward;
}  // namespace cpu

namespace cuda {
Rope rope_forward;
Rope rope_backward;
}  // namespace cuda

}  // namespace braid::kernels

#pragma once

#include <cstdint>
#include <span>

#include "kernels/matrix.h"

namespace braid::kernels {

/// y[t] = table[tokens[t]]. table [V, H], tokens [T] in [0, V), y [T, H]. The table is frozen: no backward pass.
namespace reference {
void embedding_forward(ConstMatrix table, std::span<const std::int32_t> tokens, Matrix y);
}

namespace cpu {
void embedding_forward(ConstMatrix table, std::span<const std::int32_t> tokens, Matrix y);
}

}  // namespace braid::kernels

#pragma once

#include <cstdint>
#include <span>

#include "kernels/matrix.h"

namespace braid::kernels {

/// y[t] = table[tokens[t]], or y[t] += that where it accumulates. table [V, H], tokens [T] in [0, V), y [T, H]. The
/// table is frozen: no backward pass.
using EmbeddingForward = void(ConstMatrix table, std::span<const std::int32_t> tokens, bool accumulate, Matrix y);

namespace reference {
EmbeddingForward embedding_forward;
}
namespace cpu {
EmbeddingForward embedding_forward;
}

}  // namespace braid::kernels

#pragma once

#include <cstdint>
#include <span>

#include "kernels/matrix.h"

namespace braid::kernels {

/// y[t] = table[tokens[t]], or y[t] += that where it accumulates. table [V, H], tokens [T] in [0, V), y [T, H]. The
/// table is frozen: no backward pass.
using EmbeddingForward = void(ConstMatrix table, std::span<const std::int32_t> tokens, bool accumulate, Matrix y);

/// The other way: y[rows[t]] = x[t]. No row comes twice. x [T, H], rows [T] in [0, y's rows).
using ScatterRows = void(ConstMatrix x, std::span<const std::int32_t> rows, Matrix y);

namespace reference {
EmbeddingForward embedding_forward;
ScatterRows scatter_rows;
}  // namespace reference
namespace cpu {
EmbeddingForward embedding_forward;
ScatterRows scatter_rows;
}  // namespace cpu

namespace cuda {
EmbeddingForward embedding_forward;
ScatterRows scatter_rows;
}  // namespace cuda

}  // namespace braid::kernels

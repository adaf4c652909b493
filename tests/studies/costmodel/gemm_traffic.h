#pragma once

#include "costmodel/gpu/gemm_model.h"

namespace braid::costmodel::studies {

/// Bytes that a product moves to and from the GPU's memory when the cache holds nothing of it before, as counters see
/// it: thread blocks run in waves of one a multiprocessor, a wave reads the rows of X and the columns of W that its
/// tiles of Y need, and Y is written once. Waves are rectangles of tiles, the least over kGemmTiles lying or standing
/// and over rectangles. An operand that takes at most half of the L2 cache is read once: A100 and H100 have it in two
/// halves, each of which keeps what its own multiprocessors read. Never less than shape.bytes(type), and just that
/// where one wave does or an operand stays in the cache.
double memory_traffic(const Device& device, DataType type, const GemmShape& shape);

/// The same in the order of Triton's tutorial kernels, where nothing outlasts a wave: down `group` rows of tiles, then
/// to the next column of them.
double grouped_memory_traffic(const Device& device, DataType type, const GemmShape& shape, const GemmTile& tile,
                              std::int64_t group);

}  // namespace braid::costmodel::studies

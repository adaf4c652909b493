#pragma once

#include "costmodel/gemm_model.h"

namespace braid::costmodel {

/// Bytes that a product moves to and from the GPU's memory when the cache holds nothing of it before, as counters see
/// it: thread blocks run in waves of one a multiprocessor, a wave makes a rectangle of Y's tiles and reads the rows of
/// X and the columns of W that it needs, and Y is written once. An operand that takes at most half of the L2 cache is
/// read once; the other half is what streams past it. The least over tiles (kGemmTiles) and rectangles.
///
/// Never less than shape.bytes(type), and just that where one wave does or an operand stays in the cache.
double memory_traffic(const Device& device, DataType type, const GemmShape& shape);

}  // namespace braid::costmodel

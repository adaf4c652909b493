#pragma once

#include <cstdint>

#include "kernels/matrix.h"

/// What the copy engine of sm_90 is told of matrices. gpu_tile_map.cu answers where there is a GPU, tests answer for
/// the processor.
namespace braid::kernels::cuda {

/// A matrix of bf16 as the copy engine reads it, by boxes of rows of 64 columns; what lies beyond the matrix are zeros.
struct alignas(128) TileMap {
  std::uint64_t words[16] = {};
};
/// Of boxes of so many rows, at most 256. The matrix, and so each of its rows, begins on 16 bytes.
TileMap map_tiles(ConstMatrix matrix, int box_rows);

/// Whether this thread's device has copy engines and warpgroups that multiply: sm_90.
bool has_warpgroups();
/// Multiprocessors of this thread's device.
int multiprocessors();

}  // namespace braid::kernels::cuda

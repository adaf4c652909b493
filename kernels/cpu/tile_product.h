#pragma once

#include "kernels/cpu/lanes.h"

namespace braid::kernels::cpu {

/// The left operand of a tile product, element (i, k) at data[i · row_step + k · depth_step]: its transpose is free.
struct TileLeft {
  const float* data = nullptr;
  std::int64_t row_step = 0;
  std::int64_t depth_step = 0;
};

namespace detail {

// Sums, one row of b and one number of a fit the registers: 32 with AVX-512, else 16. Fewer than ten sums would wait
// for each other.
inline constexpr int kTileVectors = kLanes == 16 ? 4 : 2;
constexpr int tile_rows_at_once(int vectors) {
  return vectors == 1 ? 12 : 6;
}

template <int Rows, int Vectors>
void tile_block(std::int64_t depth, TileLeft a, const float* b, std::int64_t b_stride, bool accumulate, float* c,
                std::int64_t c_stride) {
  Lanes sums[Rows][Vectors];
  for (int i = 0; i < Rows; ++i) {
    for (int j = 0; j < Vectors; ++j) sums[i][j] = accumulate ? load(c + i * c_stride + j * kLanes) : Lanes{};
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    Lanes right[Vectors];
    for (int j = 0; j < Vectors; ++j) right[j] = load(b + k * b_stride + j * kLanes);
    for (int i = 0; i < Rows; ++i) {
      const float left = a.data[i * a.row_step + k * a.depth_step];
      for (int j = 0; j < Vectors; ++j) sums[i][j] += left * right[j];
    }
  }
  for (int i = 0; i < Rows; ++i) {
    for (int j = 0; j < Vectors; ++j) store(c + i * c_stride + j * kLanes, sums[i][j]);
  }
}

template <int Vectors, int Rows = tile_rows_at_once(Vectors)>
void tile_rows(std::int64_t rows, std::int64_t depth, TileLeft a, const float* b, std::int64_t b_stride,
               bool accumulate, float* c, std::int64_t c_stride) {
  for (; rows >= Rows; rows -= Rows) {
    tile_block<Rows, Vectors>(depth, a, b, b_stride, accumulate, c, c_stride);
    a.data += Rows * a.row_step;
    c += Rows * c_stride;
  }
  if constexpr (Rows > 1) {
    if (rows > 0) tile_rows<Vectors, Rows - 1>(rows, depth, a, b, b_stride, accumulate, c, c_stride);
  }
}

template <int Vectors = kTileVectors>
void tile_columns(std::int64_t rows, std::int64_t columns, std::int64_t depth, TileLeft a, const float* b,
                  std::int64_t b_stride, bool accumulate, float* c, std::int64_t c_stride) {
  for (; columns >= Vectors * kLanes; columns -= Vectors * kLanes) {
    tile_rows<Vectors>(rows, depth, a, b, b_stride, accumulate, c, c_stride);
    b += Vectors * kLanes;
    c += Vectors * kLanes;
  }
  if constexpr (Vectors > 1) {
    if (columns > 0) tile_columns<Vectors - 1>(rows, columns, depth, a, b, b_stride, accumulate, c, c_stride);
  }
}

}  // namespace detail

/// c = a b, or c += a b with `accumulate`, for tiles that stay in the cache. a [rows, depth], b [depth, columns],
/// c [rows, columns]; columns a multiple of kLanes. Each element is summed in the order of k, whatever the shape.
inline void tile_product(std::int64_t rows, std::int64_t columns, std::int64_t depth, TileLeft a, const float* b,
                         std::int64_t b_stride, bool accumulate, float* c, std::int64_t c_stride) {
  detail::tile_columns(rows, columns, depth, a, b, b_stride, accumulate, c, c_stride);
}

}  // namespace braid::kernels::cpu

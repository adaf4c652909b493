#include "kernels/cuda/drops.h"
#include "kernels/cuda/tensor_matmul.h"
#include "kernels/matmul.h"

namespace braid::kernels::cuda {
namespace {

/// A block makes a tile of a product, its threads 4 × 4 numbers each; K goes by in steps.
constexpr int kTile = 64, kStep = 16, kEach = 4;
constexpr int kAcross = kTile / kEach;  // threads along a side of the tile
static_assert(kAcross * kAcross == kThreads);

/// An operand of any type and transposition: number (row, column) of op(matrix).
struct Operand {
  const void* data;
  std::int64_t row_stride, column_stride;
  bool bf16, across;
  Drops drops;
  __device__ float operator()(std::int64_t row, std::int64_t column) const {
    const std::int64_t place = row * row_stride + column * column_stride;
    const float number =
        bf16 ? static_cast<float>(static_cast<const Bf16*>(data)[place]) : static_cast<const float*>(data)[place];
    Drops::Drawn drawn;
    return drops.any() ? drops.of(number, across ? column : row, across ? row : column, drawn) : number;
  }
};

struct Product {
  Operand a, b;  // op(a) [rows, depth], op(b) [depth, columns]
  void* c;
  std::int64_t rows, columns, depth, stride;
  float alpha, beta;
  bool bf16;    // c
  Drops drops;  // of what is added to c
};

struct Tile {
  std::int32_t product, row, column;  // its number, and the tile's first row and column, in tiles
};

__global__ void __launch_bounds__(kThreads) products_kernel(const Product* products, const Tile* tiles) {
  const Tile tile = tiles[blockIdx.x];
  const Product& product = products[tile.product];
  float* a = shared_memory<float>();  // [kStep, kTile]
  float* b = a + kStep * kTile;       // [kStep, kTile]
  const int thread = static_cast<int>(threadIdx.x);
  const int own_row = thread / kAcross * kEach, own_column = thread % kAcross * kEach;
  const std::int64_t first_row = std::int64_t{tile.row} * kTile, first_column = std::int64_t{tile.column} * kTile;
  float sums[kEach][kEach] = {};
  for (std::int64_t first = 0; first < product.depth; first += kStep) {
    for (int i = thread; i < kStep * kTile; i += kThreads) {
      const std::int64_t k = first + i / kTile, row = first_row + i % kTile, column = first_column + i % kTile;
      const bool inside = k < product.depth;
      a[i] = inside && row < product.rows ? product.a(row, k) : 0.0F;
      b[i] = inside && column < product.columns ? product.b(k, column) : 0.0F;
    }
    __syncthreads();
    for (int k = 0; k < kStep; ++k) {
      float of_a[kEach], of_b[kEach];
      for (int i = 0; i < kEach; ++i) of_a[i] = a[k * kTile + own_row + i];
      for (int i = 0; i < kEach; ++i) of_b[i] = b[k * kTile + own_column + i];
      for (int i = 0; i < kEach; ++i)
        for (int j = 0; j < kEach; ++j) sums[i][j] += of_a[i] * of_b[j];
    }
    __syncthreads();
  }
  Drops::Drawn drawn;
  // Sums stay in registers only where all their places are known.
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const std::int64_t row = first_row + own_row + i, column = first_column + own_column + j;
      if (row >= product.rows || column >= product.columns) continue;
      const std::int64_t place = row * product.stride + column;
      float number = product.alpha * sums[i][j];
      if (product.drops.any()) number = product.drops.of(number, row, column, drawn);
      if (product.bf16) {
        Bf16* to = static_cast<Bf16*>(product.c) + place;
        if (product.beta != 0) number += product.beta * static_cast<float>(*to);
        *to = Bf16(number);
      } else {
        float* to = static_cast<float*>(product.c) + place;
        *to = product.beta != 0 ? number + product.beta * *to : number;
      }
    }
  }
}

Operand operand(ConstMatrix matrix, Transpose transpose, const Drops& drops) {
  const bool across = transpose == Transpose::yes;
  return {matrix.data,
          across ? 1 : matrix.stride,
          across ? matrix.stride : 1,
          matrix.type == costmodel::DataType::bf16,
          across,
          drops};
}

/// Of f32 alone: checked by.
void simt_matmul_group(std::span<const MatmulCall> calls) {
  std::vector<Product> products;
  std::vector<Tile> tiles;
  const DropTables drops(calls);
  for (const MatmulCall& call : calls) {
    const bool across = call.a_transpose == Transpose::yes;
    const std::int64_t rows = across ? call.a.columns : call.a.rows, depth = across ? call.a.rows : call.a.columns;
    BRAID_CHECK(rows == call.c.rows && (call.b_transpose == Transpose::yes ? call.b.columns : call.b.rows) == depth,
                "a product of depth {} to [{}, {}]", depth, call.c.rows, call.c.columns);
    const auto number = static_cast<std::int32_t>(products.size());
    products.push_back({operand(call.a, call.a_transpose, drops.of(call, Dropped::a, call.a.rows)),
                        operand(call.b, call.b_transpose, drops.of(call, Dropped::b, call.b.rows)), call.c.data,
                        call.c.rows, call.c.columns, depth, call.c.stride, call.alpha, call.beta,
                        call.c.type == costmodel::DataType::bf16, drops.of(call, Dropped::sum, call.c.rows)});
    for (std::int32_t row = 0; row * kTile < call.c.rows; ++row)
      for (std::int32_t column = 0; column * kTile < call.c.columns; ++column) tiles.push_back({number, row, column});
  }
  if (tiles.empty()) return;
  const Numbers<Product> staged(products);
  const Numbers<Tile> staged_tiles(tiles);
  launch(products_kernel, dim3(static_cast<unsigned>(tiles.size())), kThreads, 2 * kStep * kTile * sizeof(float),
         staged.data(), staged_tiles.data());
}

}  // namespace

void matmul_group(std::span<const MatmulCall> calls) {
  std::vector<MatmulCall> rounded, exact;
  for (const MatmulCall& call : calls) (by_tensor_cores(call) ? rounded : exact).push_back(call);
  tensor_matmul_group(rounded);
  simt_matmul_group(exact);
}

void matmul(float alpha, ConstMatrix a, Transpose a_transpose, ConstMatrix b, Transpose b_transpose, float beta,
            Matrix c) {
  const MatmulCall call{alpha, a, a_transpose, b, b_transpose, beta, c};
  matmul_group({&call, 1});
}

}  // namespace braid::kernels::cuda

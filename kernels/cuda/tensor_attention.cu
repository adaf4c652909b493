#include <cmath>

#include "kernels/cuda/attention_work.h"
#include "kernels/cuda/tensor_attention.h"
#include "kernels/cuda/tensor_core.h"

namespace braid::kernels::cuda {
namespace {

/// A block has a tile of one side's rows; rows of the other side go by together.
constexpr int kTile = kTileRows, kBlock = kTileBlock;
/// Queries that go by a tile of keys: what is summed for keys and values leaves room in registers for no more.
constexpr int kPassing = 32;
/// Rows of a head in shared memory: heads are filled up with zeros to `kSize` numbers, and rows lie in unlike banks.
template <int kSize>
constexpr int kStride = kSize + 8;

/// Rows [first, first + count) of `size` numbers from `column` on, and zeros up to `rows`, as a group of copies.
template <int kSize, int rows>
__device__ void stage_rows(const void* data, bool f32, std::int64_t stride, std::int64_t first, int count,
                           std::int64_t column, int size, Bf16* to) {
  constexpr int kAcross = kSize / kTogether;
  const bool vectors = !f32 && reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && stride % kTogether == 0 &&
                       column % kTogether == 0 && size % kTogether == 0;
  for (int i = static_cast<int>(threadIdx.x); i < rows * kAcross; i += kBlock) {
    const int row = i / kAcross, within = i % kAcross * kTogether;
    const std::int64_t place = (first + row) * stride + column + within;
    Bf16* const here = to + row * kStride<kSize> + within;
    const bool there = row < count && within < size;
    if (vectors) {
      copy_later(static_cast<const Bf16*>(data) + (there ? place : 0), here, !there);
      continue;
    }
    Together loaded{};
#pragma unroll 1
    for (int j = 0; there && j < kTogether; ++j)
      shift_in(loaded, Bf16(within + j < size ? number_at(data, f32, place + j) : 0.0F));
    *reinterpret_cast<Together*>(here) = loaded;
  }
  close_copies();
}

/// Of four lanes that share rows of sums.
__device__ float quad_max(float number) {
  number = fmaxf(number, __shfl_xor_sync(0xFFFFFFFFU, number, 1));
  return fmaxf(number, __shfl_xor_sync(0xFFFFFFFFU, number, 2));
}
__device__ float quad_sum(float number) {
  number += __shfl_xor_sync(0xFFFFFFFFU, number, 1);
  return number + __shfl_xor_sync(0xFFFFFFFFU, number, 2);
}

/// The lane's place among sums: its row within the warp's 16, and its column within the 8 of a tile.
__device__ int row_of(int i) {
  return static_cast<int>(threadIdx.x % kWarp) / 4 + i / 2 * 8;
}
__device__ int column_of(int i) {
  return static_cast<int>(threadIdx.x % kWarp) % 4 * 2 + i % 2;
}

/// sums[n] = rows [row, row + 16) of `left` · rows of `right`, both [rows, kSize].
template <int kSize, int columns>
__device__ void multiply_rows(const Bf16* left, int row, const Bf16* right, Sums (&sums)[columns / 8]) {
  const SharedTile<kStride<kSize>, false> of_left{left}, of_right{right};
#pragma unroll
  for (int within = 0; within < kSize; within += 16) {
    const FragmentA a = of_left.a(row, within);
#pragma unroll
    for (int column = 0; column < columns; column += 16) {
      FragmentB b[2];
      of_right.b(column, within, b);
      multiply(a, b[0], sums[column / 8]);
      multiply(a, b[1], sums[column / 8 + 1]);
    }
  }
}

/// sums += weights [16, columns] · rows [columns, kSize].
template <int kSize, int columns>
__device__ void mix_rows(const Sums (&weights)[columns / 8], const Bf16* rows, Sums (&sums)[kSize / 8]) {
  const SharedTile<kStride<kSize>, true> of_rows{rows};
#pragma unroll
  for (int k = 0; k < columns; k += 16) {
    const float *first = weights[k / 8].numbers, *second = weights[k / 8 + 1].numbers;
    const FragmentA a{{pack(Bf16(first[0]), Bf16(first[1])), pack(Bf16(first[2]), Bf16(first[3])),
                       pack(Bf16(second[0]), Bf16(second[1])), pack(Bf16(second[2]), Bf16(second[3]))}};
#pragma unroll
    for (int column = 0; column < kSize; column += 16) {
      FragmentB b[2];
      of_rows.b(column, k, b);
      multiply(a, b[0], sums[column / 8]);
      multiply(a, b[1], sums[column / 8 + 1]);
    }
  }
}

template <int kSize>
__global__ void __launch_bounds__(kBlock)
    tensor_forward_kernel(const QueryTile* tiles, const Stretch* stretches, int group, int size, float scale,
                          View<const Bf16> q, View<Bf16> out, View<float> log_sum) {
  const QueryTile tile = tiles[blockIdx.x];
  const std::int64_t head = blockIdx.y, kv_column = head / group * size;
  Bf16* const queries = shared_memory<Bf16>();
  Bf16* const keys = queries + kTile * kStride<kSize>;
  Bf16* const values = keys + kTile * kStride<kSize>;
  const int own_row = static_cast<int>(threadIdx.x / kWarp) * 16;
  stage_rows<kSize, kTile>(q.data, false, q.stride, tile.sequence_first + tile.first, tile.count, head * size, size,
                           queries);
  Sums mixed[kSize / 8];
  float most[2] = {-INFINITY, -INFINITY}, sum[2] = {};
  const auto stage_keys = [&](int s, std::int64_t first) {
    const Stretch& stretch = stretches[s];
    stage_rows<kSize, kTile>(stretch.k, stretch.f32, stretch.k_stride, first, tile.count_of(stretch, s, first, kTile),
                             kv_column, size, keys);
  };
  stage_keys(tile.first_stretch, 0);
  for (int s = tile.first_stretch; s < tile.last_stretch; ++s) {
    const Stretch& stretch = stretches[s];
    const bool own = s + 1 == tile.last_stretch;
    for (std::int64_t first = 0; first < tile.seen_of(stretch, s); first += kTile) {
      const int count = tile.count_of(stretch, s, first, kTile);
      await_copies<0>();
      __syncthreads();  // keys are there, and the values before have been read
      stage_rows<kSize, kTile>(stretch.v, stretch.f32, stretch.v_stride, first, count, kv_column, size, values);
      Sums scores[kTile / 8];
      multiply_rows<kSize, kTile>(queries, own_row, keys, scores);
      float highest[2] = {most[0], most[1]};
#pragma unroll
      for (int n = 0; n < kTile / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int row = own_row + row_of(i), key = n * 8 + column_of(i);
          const bool sees = key < count && (!own || first + key <= tile.first + row);
          float& score = scores[n].numbers[i];
          score = sees ? scale * score : -INFINITY;
          highest[i / 2] = fmaxf(highest[i / 2], score);
        }
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        highest[half] = quad_max(highest[half]);
        // Of a row that sees nothing yet all weights are zeros.
        const float base = highest[half] == -INFINITY ? 0.0F : highest[half];
        const float shrinks = expf(most[half] - base);
        float added = 0;
#pragma unroll
        for (int n = 0; n < kTile / 8; ++n) {
#pragma unroll
          for (int i = 2 * half; i < 2 * half + 2; ++i) {
            float& weight = scores[n].numbers[i];
            weight = expf(weight - base);
            added += weight;
          }
        }
        sum[half] = sum[half] * shrinks + quad_sum(added);
        most[half] = highest[half];
#pragma unroll
        for (int n = 0; n < kSize / 8; ++n)
          for (int i = 2 * half; i < 2 * half + 2; ++i) mixed[n].numbers[i] *= shrinks;
      }
      await_copies<0>();
      __syncthreads();  // values are there, and the keys have been read
      if (first + kTile < tile.seen_of(stretch, s)) {
        stage_keys(s, first + kTile);
      } else if (!own) {
        stage_keys(s + 1, 0);
      }
      mix_rows<kSize, kTile>(scores, values, mixed);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = own_row + row_of(i);
    if (row >= tile.count) continue;
    const std::int64_t to = tile.sequence_first + tile.first + row;
#pragma unroll
    for (int n = 0; n < kSize / 8; ++n) {
      const int column = n * 8 + column_of(i);
      if (column < size) out.set(to, head * size + column, mixed[n].numbers[i] / sum[i / 2]);
    }
    if (column_of(i) == 0) log_sum.set(to, head, most[i / 2] + logf(sum[i / 2]));
  }
}

template <int kSize>
__global__ void __launch_bounds__(kBlock)
    tensor_dq_kernel(const QueryTile* tiles, const Stretch* stretches, int group, int size, float scale,
                     View<const Bf16> q, View<const Bf16> dout, View<const float> log_sum, View<const float> delta,
                     View<Bf16> dq) {
  const QueryTile tile = tiles[blockIdx.x];
  const std::int64_t head = blockIdx.y, kv_column = head / group * size;
  Bf16* const queries = shared_memory<Bf16>();
  Bf16* const gradients = queries + kTile * kStride<kSize>;
  Bf16* const keys = gradients + kTile * kStride<kSize>;
  Bf16* const values = keys + kTile * kStride<kSize>;
  const int own_row = static_cast<int>(threadIdx.x / kWarp) * 16;
  const std::int64_t first_row = tile.sequence_first + tile.first;
  stage_rows<kSize, kTile>(q.data, false, q.stride, first_row, tile.count, head * size, size, queries);
  stage_rows<kSize, kTile>(dout.data, false, dout.stride, first_row, tile.count, head * size, size, gradients);
  float known_sum[2], known_delta[2];
  for (int half = 0; half < 2; ++half) {
    const int row = own_row + row_of(2 * half);
    known_sum[half] = row < tile.count ? log_sum(first_row + row, head) : 0.0F;
    known_delta[half] = row < tile.count ? delta(first_row + row, head) : 0.0F;
  }
  Sums d[kSize / 8];
  for (int s = tile.first_stretch; s < tile.last_stretch; ++s) {
    const Stretch& stretch = stretches[s];
    const bool own = s + 1 == tile.last_stretch;
    for (std::int64_t first = 0; first < tile.seen_of(stretch, s); first += kTile) {
      const int count = tile.count_of(stretch, s, first, kTile);
      __syncthreads();
      stage_rows<kSize, kTile>(stretch.k, stretch.f32, stretch.k_stride, first, count, kv_column, size, keys);
      stage_rows<kSize, kTile>(stretch.v, stretch.f32, stretch.v_stride, first, count, kv_column, size, values);
      await_copies<0>();
      __syncthreads();
      Sums slopes[kTile / 8], along[kTile / 8];
      multiply_rows<kSize, kTile>(queries, own_row, keys, slopes);
      multiply_rows<kSize, kTile>(gradients, own_row, values, along);
#pragma unroll
      for (int n = 0; n < kTile / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int row = own_row + row_of(i), key = n * 8 + column_of(i);
          const bool sees = row < tile.count && key < count && (!own || first + key <= tile.first + row);
          float& slope = slopes[n].numbers[i];
          const float weight = sees ? expf(scale * slope - known_sum[i / 2]) : 0.0F;
          slope = weight * (along[n].numbers[i] - known_delta[i / 2]) * scale;
        }
      }
      mix_rows<kSize, kTile>(slopes, keys, d);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = own_row + row_of(i);
    if (row >= tile.count) continue;
#pragma unroll
    for (int n = 0; n < kSize / 8; ++n) {
      const int column = n * 8 + column_of(i);
      if (column < size) dq.set(first_row + row, head * size + column, d[n].numbers[i]);
    }
  }
}

/// Queries go by, head after head of the group, in one order.
template <int kSize>
__global__ void __launch_bounds__(kBlock)
    tensor_dkv_kernel(const KeyTile* tiles, const Stretch* stretches, int group, int size, float scale,
                      View<const Bf16> q, View<const Bf16> dout, View<const float> log_sum, View<const float> delta) {
  const KeyTile tile = tiles[blockIdx.x];
  const Stretch& stretch = stretches[tile.stretch];
  const std::int64_t kv_column = std::int64_t{blockIdx.y} * size;
  Bf16* const keys = shared_memory<Bf16>();
  Bf16* const values = keys + kTile * kStride<kSize>;
  Bf16* const queries = values + kTile * kStride<kSize>;
  Bf16* const gradients = queries + kPassing * kStride<kSize>;
  float* const sums_of = reinterpret_cast<float*>(gradients + kPassing * kStride<kSize>);  // of the queries' rows
  float* const deltas_of = sums_of + kPassing;
  const int own_row = static_cast<int>(threadIdx.x / kWarp) * 16;
  stage_rows<kSize, kTile>(stretch.k, stretch.f32, stretch.k_stride, tile.first, tile.count, kv_column, size, keys);
  stage_rows<kSize, kTile>(stretch.v, stretch.f32, stretch.v_stride, tile.first, tile.count, kv_column, size, values);
  Sums dk[kSize / 8], dv[kSize / 8];
  const std::int64_t from = tile.own ? tile.first / kPassing * kPassing : 0;
  for (int of_group = 0; of_group < group; ++of_group) {
    const std::int64_t head = std::int64_t{blockIdx.y} * group + of_group;
    for (std::int64_t first = from; first < tile.queries; first += kPassing) {
      const int count = static_cast<int>(tile.queries - first < kPassing ? tile.queries - first : kPassing);
      const std::int64_t first_query = tile.sequence_first + first;
      __syncthreads();
      stage_rows<kSize, kPassing>(q.data, false, q.stride, first_query, count, head * size, size, queries);
      stage_rows<kSize, kPassing>(dout.data, false, dout.stride, first_query, count, head * size, size, gradients);
      for (int i = static_cast<int>(threadIdx.x); i < kPassing; i += kBlock) {
        sums_of[i] = i < count ? log_sum(first_query + i, head) : 0.0F;
        deltas_of[i] = i < count ? delta(first_query + i, head) : 0.0F;
      }
      await_copies<0>();
      __syncthreads();
      Sums weights[kPassing / 8], slopes[kPassing / 8];
      multiply_rows<kSize, kPassing>(keys, own_row, queries, weights);
      multiply_rows<kSize, kPassing>(values, own_row, gradients, slopes);
#pragma unroll
      for (int n = 0; n < kPassing / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int row = own_row + row_of(i), query = n * 8 + column_of(i);
          const bool seen = row < tile.count && query < count && (!tile.own || tile.first + row <= first + query);
          float &weight = weights[n].numbers[i], &slope = slopes[n].numbers[i];
          weight = seen ? expf(scale * weight - sums_of[query]) : 0.0F;
          slope = weight * (slope - deltas_of[query]) * scale;
        }
      }
      mix_rows<kSize, kPassing>(weights, gradients, dv);
      mix_rows<kSize, kPassing>(slopes, queries, dk);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = own_row + row_of(i);
    if (row >= tile.count) continue;
#pragma unroll
    for (int n = 0; n < kSize / 8; ++n) {
      const int column = n * 8 + column_of(i);
      if (column >= size) continue;
      const std::int64_t to = tile.first + row;
      store_at(stretch.dk, stretch.d_f32, to * stretch.dk_stride + kv_column + column, dk[n].numbers[i], !tile.own);
      store_at(stretch.dv, stretch.d_f32, to * stretch.dv_stride + kv_column + column, dv[n].numbers[i], !tile.own);
    }
  }
}

/// Calls body with the heads' size as kernels are compiled for, as a type.
template <typename Body>
void with_size(std::int64_t size, const Body& body) {
  if (size <= 32) return body(std::integral_constant<int, 32>());
  if (size <= 64) return body(std::integral_constant<int, 64>());
  if (size <= 80) return body(std::integral_constant<int, 80>());
  if (size <= 96) return body(std::integral_constant<int, 96>());
  body(std::integral_constant<int, 128>());
}

std::size_t rows_bytes(int rows, int stride) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(stride) * sizeof(Bf16);
}

float scale_of(const AttentionShape& shape) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.head_dim)));
}

}  // namespace

void tensor_attention_forward(const AttentionShape& shape, std::span<const SequenceRows> sequences, ConstMatrix q,
                              ConstMatrix k, ConstMatrix v, Matrix out, Matrix log_sum) {
  const Work work = work_of(sequences, kTile, k, v, {}, {});
  if (work.queries.empty()) return;
  const Numbers<Stretch> stretches(work.stretches);
  const Numbers<QueryTile> tiles(work.queries);
  with_size(shape.head_dim, [&](auto size) {
    constexpr int kSize = decltype(size)::value;
    launch(tensor_forward_kernel<kSize>,
           dim3(static_cast<unsigned>(work.queries.size()), static_cast<unsigned>(shape.heads)), kBlock,
           rows_bytes(3 * kTile, kStride<kSize>), tiles.data(), stretches.data(), shape.heads / shape.kv_heads,
           shape.head_dim, scale_of(shape), view<const Bf16>(q), view<Bf16>(out), view<float>(log_sum));
  });
}

void tensor_attention_backward(const AttentionShape& shape, std::span<const SequenceRows> sequences, ConstMatrix q,
                               ConstMatrix k, ConstMatrix v, ConstMatrix log_sum, ConstMatrix dout, ConstMatrix delta,
                               Matrix dq, Matrix dk, Matrix dv) {
  const Work work = work_of(sequences, kTile, k, v, dk, dv);
  if (work.queries.empty()) return;
  const Numbers<Stretch> stretches(work.stretches);
  const Numbers<QueryTile> tiles(work.queries);
  const Numbers<KeyTile> key_tiles(work.keys);
  with_size(shape.head_dim, [&](auto size) {
    constexpr int kSize = decltype(size)::value;
    launch(tensor_dq_kernel<kSize>,
           dim3(static_cast<unsigned>(work.queries.size()), static_cast<unsigned>(shape.heads)), kBlock,
           rows_bytes(4 * kTile, kStride<kSize>), tiles.data(), stretches.data(), shape.heads / shape.kv_heads,
           shape.head_dim, scale_of(shape), view<const Bf16>(q), view<const Bf16>(dout), view<const float>(log_sum),
           view<const float>(delta), view<Bf16>(dq));
    launch(tensor_dkv_kernel<kSize>,
           dim3(static_cast<unsigned>(work.keys.size()), static_cast<unsigned>(shape.kv_heads)), kBlock,
           rows_bytes(2 * kTile + 2 * kPassing, kStride<kSize>) + 2 * kPassing * sizeof(float), key_tiles.data(),
           stretches.data(), shape.heads / shape.kv_heads, shape.head_dim, scale_of(shape), view<const Bf16>(q),
           view<const Bf16>(dout), view<const float>(log_sum), view<const float>(delta));
  });
}

}  // namespace braid::kernels::cuda

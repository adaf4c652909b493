#include <cmath>

#include "kernels/cuda/attention_work.h"
#include "kernels/cuda/library_attention.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/tensor_attention.h"
#include "kernels/elementwise.h"

namespace braid::kernels::cuda {
namespace {

constexpr int kMostDim = 128;
constexpr int kQueries = 32;  // of a block: its own rows, forward and for dq
constexpr int kKeys = 32;     // that go by together: one a lane
constexpr int kWarps = kThreads / kWarp;
constexpr int kEach = kQueries / kWarps;             // rows of a warp
constexpr int kLaneNumbers = kMostDim / int{kWarp};  // of a head that a lane keeps of each row

/// Rows [first, first + count) of `size` numbers from `column` on, to shared memory; rows are size + 1 apart, so that
/// lanes that read a column meet no bank twice.
__device__ void load_rows(const void* data, bool f32, std::int64_t stride, std::int64_t first, int count,
                          std::int64_t column, int size, float* to) {
  for (int i = static_cast<int>(threadIdx.x); i < count * size; i += kThreads)
    to[i / size * (size + 1) + i % size] = number_at(data, f32, (first + i / size) * stride + column + i % size);
}

__device__ float dot(const float* a, const float* b, int size) {
  float sum = 0;
  for (int i = 0; i < size; ++i) sum += a[i] * b[i];
  return sum;
}

/// Calls body(n, i) for the n-th number i of a head that the lane has: of a number of times that the compiler knows, so
/// that what a lane keeps stays in registers.
template <typename Body>
__device__ void for_lane(int lane, int size, const Body& body) {
#pragma unroll
  for (int n = 0; n < kLaneNumbers; ++n) {
    const int i = lane + n * int{kWarp};
    if (i < size) body(n, i);
  }
}

/// Softmax as keys go by (Milakov and Gimelshein 2018), a lane a key; then each lane adds up its numbers of the head.
__global__ void __launch_bounds__(kThreads, 2)
    attention_forward_kernel(const QueryTile* tiles, const Stretch* stretches, int group, int size, float scale,
                             View<const float> q, View<float> out, View<float> log_sum) {
  const QueryTile tile = tiles[blockIdx.x];
  const std::int64_t head = blockIdx.y, kv_column = head / group * size;
  float* queries = shared_memory<float>();  // [kQueries, size + 1]
  float* keys = queries + kQueries * (size + 1);
  float* values = keys + kKeys * (size + 1);
  const int lane = static_cast<int>(threadIdx.x % kWarp), warp = static_cast<int>(threadIdx.x / kWarp);
  load_rows(q.data, true, q.stride, tile.sequence_first + tile.first, tile.count, head * size, size, queries);
  float most[kEach], sum[kEach], mixed[kEach][kLaneNumbers];
#pragma unroll
  for (int r = 0; r < kEach; ++r) {
    most[r] = -INFINITY, sum[r] = 0;
    for (int n = 0; n < kLaneNumbers; ++n) mixed[r][n] = 0;
  }
  for (int s = tile.first_stretch; s < tile.last_stretch; ++s) {
    const Stretch& stretch = stretches[s];
    const bool own = s + 1 == tile.last_stretch;
    const std::int64_t seen = own ? tile.first + tile.count : stretch.count;
    for (std::int64_t first = 0; first < seen; first += kKeys) {
      const int count = static_cast<int>(seen - first < kKeys ? seen - first : kKeys);
      __syncthreads();
      load_rows(stretch.k, stretch.f32, stretch.k_stride, first, count, kv_column, size, keys);
      load_rows(stretch.v, stretch.f32, stretch.v_stride, first, count, kv_column, size, values);
      __syncthreads();
#pragma unroll
      for (int r = 0; r < kEach; ++r) {
        const int row = warp * kEach + r;
        const bool sees = row < tile.count && lane < count && (!own || first + lane <= tile.first + row);
        const float score = sees ? scale * dot(queries + row * (size + 1), keys + lane * (size + 1), size) : -INFINITY;
        const float highest = fmaxf(most[r], warp_max(score));
        if (highest == -INFINITY) continue;  // of the whole warp: nothing is seen yet
        const float shrinks = expf(most[r] - highest), weight = sees ? expf(score - highest) : 0.0F;
        sum[r] = sum[r] * shrinks + warp_sum(weight);
        most[r] = highest;
        for (int n = 0; n < kLaneNumbers; ++n) mixed[r][n] *= shrinks;
        for (int key = 0; key < count; ++key) {
          const float of_key = __shfl_sync(0xFFFFFFFFU, weight, key);
          for_lane(lane, size, [&](int n, int i) { mixed[r][n] += of_key * values[key * (size + 1) + i]; });
        }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kEach; ++r) {
    const int row = warp * kEach + r;
    if (row >= tile.count) continue;
    const std::int64_t to = tile.sequence_first + tile.first + row;
    for_lane(lane, size, [&](int n, int i) { out.set(to, head * size + i, mixed[r][n] / sum[r]); });
    if (lane == 0) log_sum.set(to, head, most[r] + logf(sum[r]));
  }
}

/// delta[t, head] = dout · out: a warp each.
template <typename Number>
__global__ void delta_kernel(View<const Number> dout, View<const Number> out, int size, View<float> delta) {
  const std::int64_t row = blockIdx.x, lane = threadIdx.x % kWarp;
  for (std::int64_t head = threadIdx.x / kWarp; head < delta.columns; head += kWarps) {
    float sum = 0;
    for (std::int64_t i = lane; i < size; i += kWarp) sum += dout(row, head * size + i) * out(row, head * size + i);
    sum = warp_sum(sum);
    if (lane == 0) delta.set(row, head, sum);
  }
}

__global__ void __launch_bounds__(kThreads, 2)
    attention_dq_kernel(const QueryTile* tiles, const Stretch* stretches, int group, int size, float scale,
                        View<const float> q, View<const float> dout, View<const float> log_sum, View<const float> delta,
                        View<float> dq) {
  const QueryTile tile = tiles[blockIdx.x];
  const std::int64_t head = blockIdx.y, kv_column = head / group * size;
  float* queries = shared_memory<float>();
  float* gradients = queries + kQueries * (size + 1);
  float* keys = gradients + kQueries * (size + 1);
  float* values = keys + kKeys * (size + 1);
  const int lane = static_cast<int>(threadIdx.x % kWarp), warp = static_cast<int>(threadIdx.x / kWarp);
  const std::int64_t first_row = tile.sequence_first + tile.first;
  load_rows(q.data, true, q.stride, first_row, tile.count, head * size, size, queries);
  load_rows(dout.data, true, dout.stride, first_row, tile.count, head * size, size, gradients);
  float d[kEach][kLaneNumbers] = {};
  for (int s = tile.first_stretch; s < tile.last_stretch; ++s) {
    const Stretch& stretch = stretches[s];
    const bool own = s + 1 == tile.last_stretch;
    const std::int64_t seen = own ? tile.first + tile.count : stretch.count;
    for (std::int64_t first = 0; first < seen; first += kKeys) {
      const int count = static_cast<int>(seen - first < kKeys ? seen - first : kKeys);
      __syncthreads();
      load_rows(stretch.k, stretch.f32, stretch.k_stride, first, count, kv_column, size, keys);
      load_rows(stretch.v, stretch.f32, stretch.v_stride, first, count, kv_column, size, values);
      __syncthreads();
#pragma unroll
      for (int r = 0; r < kEach; ++r) {
        const int row = warp * kEach + r;
        const bool sees = row < tile.count && lane < count && (!own || first + lane <= tile.first + row);
        float slope = 0;
        if (sees) {
          const float* query = queries + row * (size + 1);
          const float weight =
              expf(scale * dot(query, keys + lane * (size + 1), size) - log_sum(first_row + row, head));
          const float along = dot(gradients + row * (size + 1), values + lane * (size + 1), size);
          slope = weight * (along - delta(first_row + row, head)) * scale;
        }
        for (int key = 0; key < count; ++key) {
          const float of_key = __shfl_sync(0xFFFFFFFFU, slope, key);
          for_lane(lane, size, [&](int n, int i) { d[r][n] += of_key * keys[key * (size + 1) + i]; });
        }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kEach; ++r) {
    const int row = warp * kEach + r;
    if (row >= tile.count) continue;
    for_lane(lane, size, [&](int n, int i) { dq.set(first_row + row, head * size + i, d[r][n]); });
  }
}

/// A block a tile of keys: queries go by, a lane each, head after head of the group, in one order.
__global__ void __launch_bounds__(kThreads, 2)
    attention_dkv_kernel(const KeyTile* tiles, const Stretch* stretches, int group, int size, float scale,
                         View<const float> q, View<const float> dout, View<const float> log_sum,
                         View<const float> delta) {
  const KeyTile tile = tiles[blockIdx.x];
  const Stretch& stretch = stretches[tile.stretch];
  const std::int64_t kv_column = std::int64_t{blockIdx.y} * size;
  float* keys = shared_memory<float>();
  float* values = keys + kQueries * (size + 1);
  float* queries = values + kQueries * (size + 1);
  float* gradients = queries + kKeys * (size + 1);
  const int lane = static_cast<int>(threadIdx.x % kWarp), warp = static_cast<int>(threadIdx.x / kWarp);
  load_rows(stretch.k, stretch.f32, stretch.k_stride, tile.first, tile.count, kv_column, size, keys);
  load_rows(stretch.v, stretch.f32, stretch.v_stride, tile.first, tile.count, kv_column, size, values);
  float dk[kEach][kLaneNumbers] = {}, dv[kEach][kLaneNumbers] = {};
  const std::int64_t from = tile.own ? tile.first / kKeys * kKeys : 0;
  for (int of_group = 0; of_group < group; ++of_group) {
    const std::int64_t head = std::int64_t{blockIdx.y} * group + of_group;
    for (std::int64_t first = from; first < tile.queries; first += kKeys) {
      const int count = static_cast<int>(tile.queries - first < kKeys ? tile.queries - first : kKeys);
      __syncthreads();
      load_rows(q.data, true, q.stride, tile.sequence_first + first, count, head * size, size, queries);
      load_rows(dout.data, true, dout.stride, tile.sequence_first + first, count, head * size, size, gradients);
      __syncthreads();
#pragma unroll
      for (int r = 0; r < kEach; ++r) {
        const int row = warp * kEach + r;
        const bool seen = row < tile.count && lane < count && (!tile.own || tile.first + row <= first + lane);
        float weight = 0, slope = 0;
        if (seen) {
          const std::int64_t query = tile.sequence_first + first + lane;
          weight = expf(scale * dot(queries + lane * (size + 1), keys + row * (size + 1), size) - log_sum(query, head));
          const float along = dot(gradients + lane * (size + 1), values + row * (size + 1), size);
          slope = weight * (along - delta(query, head)) * scale;
        }
        for (int other = 0; other < count; ++other) {
          const float of_weight = __shfl_sync(0xFFFFFFFFU, weight, other);
          const float of_slope = __shfl_sync(0xFFFFFFFFU, slope, other);
          for_lane(lane, size, [&](int n, int i) {
            dv[r][n] += of_weight * gradients[other * (size + 1) + i];
            dk[r][n] += of_slope * queries[other * (size + 1) + i];
          });
        }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kEach; ++r) {
    const int row = warp * kEach + r;
    if (row >= tile.count) continue;
    for_lane(lane, size, [&](int n, int i) {
      store_at(stretch.dk, stretch.d_f32, (tile.first + row) * stretch.dk_stride + kv_column + i, dk[r][n], !tile.own);
      store_at(stretch.dv, stretch.d_f32, (tile.first + row) * stretch.dv_stride + kv_column + i, dv[r][n], !tile.own);
    });
  }
}

void check_shape(const AttentionShape& shape) {
  BRAID_CHECK(shape.head_dim <= kMostDim, "heads of {} numbers, of at most {}", shape.head_dim, kMostDim);
}

std::size_t rows_bytes(int rows, std::int64_t size) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(size + 1) * sizeof(float);
}

}  // namespace

void attention_forward(const AttentionShape& shape, std::span<const SequenceRows> sequences, ConstMatrix q,
                       ConstMatrix k, ConstMatrix v, Matrix out, Matrix log_sum) {
  check_shape(shape);
  if (q.type == costmodel::DataType::bf16) {
    std::int64_t longest = 0;
    for (const SequenceRows& sequence : sequences) longest = std::max(longest, sequence.count);
    if (takes_second_kernel(costmodel::Operator::attention, costmodel::Pass::forward,
                            {shape.heads, shape.kv_heads, shape.head_dim}, longest) &&
        library_attention().forward(shape, sequences, q, k, v, out, log_sum))
      return;
    return tensor_attention_forward(shape, sequences, q, k, v, out, log_sum);
  }
  const Work work = work_of(sequences, kQueries, k, v, {}, {});
  if (work.queries.empty()) return;
  const Numbers<Stretch> stretches(work.stretches);
  const Numbers<QueryTile> tiles(work.queries);
  launch(attention_forward_kernel, dim3(static_cast<unsigned>(work.queries.size()), static_cast<unsigned>(shape.heads)),
         kThreads, rows_bytes(kQueries + 2 * kKeys, shape.head_dim), tiles.data(), stretches.data(),
         shape.heads / shape.kv_heads, shape.head_dim, 1.0 / std::sqrt(static_cast<double>(shape.head_dim)),
         view<const float>(q), view<float>(out), view<float>(log_sum));
}

namespace {

/// What later chunks of the samples have sent back.
void add_later(std::span<const SequenceRows> sequences, Matrix dk, Matrix dv) {
  for (const SequenceRows& sequence : sequences) {
    if (sequence.later_dk.rows == 0) continue;
    add(sequence.later_dk, dk.row_range(sequence.first, sequence.first + sequence.later_dk.rows));
    add(sequence.later_dv, dv.row_range(sequence.first, sequence.first + sequence.later_dv.rows));
  }
}

}  // namespace

void attention_backward(const AttentionShape& shape, std::span<const SequenceRows> sequences, ConstMatrix q,
                        ConstMatrix k, ConstMatrix v, ConstMatrix out, ConstMatrix log_sum, ConstMatrix dout, Matrix dq,
                        Matrix dk, Matrix dv) {
  check_shape(shape);
  if (q.rows == 0) return;
  const Numbers<float> deltas(q.rows * shape.heads);
  const View<float> delta{deltas.data(), q.rows, shape.heads, shape.heads};
  const View<const float> known{deltas.data(), q.rows, shape.heads, shape.heads};
  const auto group = static_cast<int>(shape.heads / shape.kv_heads), size = static_cast<int>(shape.head_dim);
  with_type(q.type, [&]<typename Number>(Number) {
    launch(delta_kernel<Number>, dim3(static_cast<unsigned>(q.rows)), kThreads, 0, view<const Number>(dout),
           view<const Number>(out), size, delta);
  });
  if (q.type == costmodel::DataType::bf16) {
    tensor_attention_backward(shape, sequences, q, k, v, log_sum, dout, {deltas.data(), q.rows, shape.heads}, dq, dk,
                              dv);
    return add_later(sequences, dk, dv);
  }
  const Work work = work_of(sequences, kQueries, k, v, dk, dv);
  if (work.queries.empty()) return;
  const Numbers<Stretch> stretches(work.stretches);
  const Numbers<QueryTile> tiles(work.queries);
  const Numbers<KeyTile> key_tiles(work.keys);
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.head_dim)));
  const std::size_t shared = rows_bytes(2 * kQueries + 2 * kKeys, shape.head_dim);
  launch(attention_dq_kernel, dim3(static_cast<unsigned>(work.queries.size()), static_cast<unsigned>(shape.heads)),
         kThreads, shared, tiles.data(), stretches.data(), group, size, scale, view<const float>(q),
         view<const float>(dout), view<const float>(log_sum), known, view<float>(dq));
  launch(attention_dkv_kernel, dim3(static_cast<unsigned>(work.keys.size()), static_cast<unsigned>(shape.kv_heads)),
         kThreads, shared, key_tiles.data(), stretches.data(), group, size, scale, view<const float>(q),
         view<const float>(dout), view<const float>(log_sum), known);
  add_later(sequences, dk, dv);
}

}  // namespace braid::kernels::cuda

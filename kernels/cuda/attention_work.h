#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "kernels/attention.h"
#include "kernels/cuda/simt.h"

/// What attention's kernels are told, whichever compute: sequences cut into tiles of queries and of keys.
namespace braid::kernels::cuda {

/// Keys that lie together: an earlier microbatch's, or a sequence's own.
struct Stretch {
  const void *k, *v;
  void *dk, *dv;  // going back
  std::int64_t count, k_stride, v_stride, dk_stride, dv_stride;
  bool f32;  // a prefix of an f32 adapter beside bf16 activations
  bool d_f32;
};

/// A block's work: queries [first, first + count) of a sequence whose stretches are [first_stretch, last_stretch), the
/// last its own keys, of which query q of the sequence sees q + 1.
struct QueryTile {
  std::int64_t sequence_first, first;
  std::int32_t count, first_stretch, last_stretch;
  /// Of the keys of stretch number s, which is `stretch`, those that any of the queries sees.
  __device__ std::int64_t seen_of(const Stretch& stretch, int s) const {
    return s + 1 == last_stretch ? first + count : stretch.count;
  }
  /// Those of a tile of them that begins at `first_key`.
  __device__ int count_of(const Stretch& stretch, int s, std::int64_t first_key, int most) const {
    const std::int64_t left = seen_of(stretch, s) - first_key;
    return static_cast<int>(left < most ? left : most);
  }
};

/// Keys [first, first + count) of one stretch, seen by queries of its sequence of `queries` rows.
struct KeyTile {
  std::int64_t sequence_first, queries, first;
  std::int32_t count, stretch;
  bool own;  // key k is seen from query k on, else by all
};

__device__ inline float number_at(const void* data, bool f32, std::int64_t place) {
  return f32 ? static_cast<const float*>(data)[place] : static_cast<float>(static_cast<const Bf16*>(data)[place]);
}
__device__ inline void store_at(void* data, bool f32, std::int64_t place, float number, bool adds) {
  if (adds) number += number_at(data, f32, place);
  if (f32) {
    static_cast<float*>(data)[place] = number;
  } else {
    static_cast<Bf16*>(data)[place] = Bf16(number);
  }
}

/// The work of all sequences as tables.
struct Work {
  std::vector<Stretch> stretches;
  std::vector<QueryTile> queries;
  std::vector<KeyTile> keys;
};

inline Stretch stretch_of(ConstMatrix k, ConstMatrix v, Matrix dk, Matrix dv) {
  BRAID_CHECK(k.type == v.type && dk.type == dv.type, "keys and values of two types");
  return {k.data,
          v.data,
          dk.data,
          dv.data,
          k.rows,
          k.stride,
          v.stride,
          dk.stride,
          dv.stride,
          k.type == costmodel::DataType::f32,
          dk.type == costmodel::DataType::f32};
}

/// Tiles are of so many rows. `dk` and `dv` may be empty.
inline Work work_of(std::span<const SequenceRows> sequences, std::int64_t tile, ConstMatrix k, ConstMatrix v, Matrix dk,
                    Matrix dv) {
  Work work;
  for (const SequenceRows& sequence : sequences) {
    if (sequence.count == 0) continue;
    const auto first = static_cast<std::int32_t>(work.stretches.size());
    for (const EarlierKeys& earlier : sequence.earlier)
      if (earlier.k.rows > 0) work.stretches.push_back(stretch_of(earlier.k, earlier.v, earlier.dk, earlier.dv));
    const std::int64_t from = sequence.first, to = sequence.first + sequence.count;
    const auto own = [&](auto matrix) { return matrix.rows > 0 ? matrix.row_range(from, to) : matrix; };
    work.stretches.push_back(stretch_of(own(k), own(v), own(dk), own(dv)));
    const auto last = static_cast<std::int32_t>(work.stretches.size());
    for (std::int64_t row = 0; row < sequence.count; row += tile)
      work.queries.push_back({from, row, static_cast<std::int32_t>(std::min(tile, sequence.count - row)), first, last});
    for (std::int32_t stretch = first; stretch < last; ++stretch) {
      const std::int64_t count = work.stretches[static_cast<std::size_t>(stretch)].count;
      for (std::int64_t row = 0; row < count; row += tile)
        work.keys.push_back({from, sequence.count, row, static_cast<std::int32_t>(std::min(tile, count - row)), stretch,
                             stretch + 1 == last});
    }
  }
  return work;
}

}  // namespace braid::kernels::cuda

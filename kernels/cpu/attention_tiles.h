#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/parallel.h"
#include "kernels/attention.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/tile_product.h"

namespace braid::kernels::cpu {

/// How attention is cut into tiles: keys in blocks of kKeyBlock, queries in blocks of about kQueryRows rows, where the
/// query heads that share a key/value head are rows of one block (row of query q and head g: q · group + g).
inline constexpr std::int64_t kKeyBlock = 64;
inline constexpr std::int64_t kQueryRows = 48;

/// One sequence and one key/value head: what a thread works on alone.
struct AttentionJob {
  SequenceRows sequence;
  std::int64_t earlier = 0;  ///< keys of the sequence's earlier tokens
  std::int64_t kv_head = 0;
  std::int64_t group = 0;       ///< query heads that share it
  std::int64_t size = 0;        ///< D
  std::int64_t padded = 0;      ///< D rounded up to kLanes
  std::int64_t block = 0;       ///< queries in a block
  std::int64_t block_rows = 0;  ///< block · group
  float scale = 0.0F;

  std::int64_t first_query_column() const { return kv_head * group * size; }
  std::int64_t kv_column() const { return kv_head * size; }
  std::int64_t keys() const { return earlier + sequence.count; }
  /// Numbers of a matrix that stage_keys_transposed fills.
  std::int64_t transposed_numbers() const { return (keys() + kKeyBlock - 1) / kKeyBlock * kKeyBlock * padded; }
};

inline void check_attention_shapes(const AttentionShape& shape, std::span<const SequenceRows> sequences, ConstMatrix q,
                                   ConstMatrix k, ConstMatrix v) {
  BRAID_CHECK(shape.kv_heads > 0 && shape.heads % shape.kv_heads == 0 && shape.head_dim > 0,
              "{} heads over {} key/value heads of {}", shape.heads, shape.kv_heads, shape.head_dim);
  const std::int64_t kv_columns = shape.kv_heads * shape.head_dim;
  BRAID_CHECK(q.columns == shape.heads * shape.head_dim && k.columns == kv_columns && v.columns == kv_columns,
              "q, k, v of {}, {}, {} columns for {} and {} heads of {}", q.columns, k.columns, v.columns, shape.heads,
              shape.kv_heads, shape.head_dim);
  for (const SequenceRows& sequence : sequences) {
    BRAID_CHECK(sequence.first >= 0 && sequence.count >= 0 && sequence.first + sequence.count <= q.rows &&
                    k.rows == q.rows && v.rows == q.rows,
                "sequence of rows {} + {} in q, k, v of {}, {}, {} rows", sequence.first, sequence.count, q.rows,
                k.rows, v.rows);
    for (const EarlierKeys& earlier : sequence.earlier) {
      BRAID_CHECK(
          earlier.k.rows == earlier.v.rows && earlier.k.columns == kv_columns && earlier.v.columns == kv_columns,
          "earlier k, v of [{}, {}], [{}, {}]", earlier.k.rows, earlier.k.columns, earlier.v.rows, earlier.v.columns);
    }
  }
}

/// Heads outermost, so that neighbours, which one thread gets, are sequences of all lengths.
template <typename Body>
void for_attention_jobs(const AttentionShape& shape, std::span<const SequenceRows> sequences, const Body& body) {
  const auto sequence_count = static_cast<std::int64_t>(sequences.size());
  parallel_jobs(shape.kv_heads * sequence_count, [&](std::int64_t index) {
    AttentionJob job;
    job.sequence = sequences[static_cast<std::size_t>(index % sequence_count)];
    if (job.sequence.count == 0) return;
    for (const EarlierKeys& earlier : job.sequence.earlier) job.earlier += earlier.k.rows;
    job.kv_head = index / sequence_count;
    job.group = shape.heads / shape.kv_heads;
    job.size = shape.head_dim;
    job.padded = round_up_to_lanes(job.size);
    job.block = std::max<std::int64_t>(1, kQueryRows / job.group);
    job.block_rows = job.block * job.group;
    job.scale = 1.0F / std::sqrt(static_cast<float>(job.size));
    body(job);
  });
}

/// Calls body(first query, queries) for each block of queries of the job's sequence.
template <typename Body>
void for_query_blocks(const AttentionJob& job, const Body& body) {
  for (std::int64_t first = 0; first < job.sequence.count; first += job.block) {
    body(first, std::min(job.block, job.sequence.count - first));
  }
}

/// The same from the last block on.
template <typename Body>
void for_query_blocks_backwards(const AttentionJob& job, const Body& body) {
  for (std::int64_t first = (job.sequence.count - 1) / job.block * job.block; first >= 0; first -= job.block)
    body(first, std::min(job.block, job.sequence.count - first));
}

/// Calls body(first key, keys, columns) for each block of keys up to key `end`; columns is keys rounded up to kLanes.
/// Keys are counted from the sequence's first token.
template <typename Body>
void for_key_blocks(std::int64_t end, const Body& body) {
  for (std::int64_t first = 0; first < end; first += kKeyBlock) {
    const std::int64_t keys = std::min(kKeyBlock, end - first);
    body(first, keys, round_up_to_lanes(keys));
  }
}

/// Copies `size` numbers times `scale`, and zeros up to `padded`.
inline void stage_row(const float* from, std::int64_t size, float scale, std::int64_t padded, float* to) {
  for_lanes(size, [&](std::int64_t i, std::int64_t count) { store(to + i, load(from + i, count) * scale); });
  std::fill(to + round_up_to_lanes(size), to + padded, 0.0F);
}

/// Calls body(key, its row of the job's columns) for the keys of the sequence's earlier tokens, whose rows of k, v, dk
/// or dv are `part`.
template <typename Rows, typename Body>
void for_earlier_keys(const AttentionJob& job, Rows EarlierKeys::*part, const Body& body) {
  std::int64_t key = 0;
  for (const EarlierKeys& earlier : job.sequence.earlier) {
    const Rows rows = earlier.*part;
    for (std::int64_t row = 0; row < rows.rows; ++row) body(key++, rows.row(row) + job.kv_column());
  }
}

/// Likewise for the sequence's rows of `own`.
template <typename Rows, typename Body>
void for_own_keys(const AttentionJob& job, Rows own, const Body& body) {
  for (std::int64_t row = 0; row < job.sequence.count; ++row)
    body(job.earlier + row, own.row(job.sequence.first + row) + job.kv_column());
}

/// All keys of the job: k or v of its earlier tokens and of its rows.
template <typename Body>
void for_keys(const AttentionJob& job, ConstMatrix own, ConstMatrix EarlierKeys::*earlier, const Body& body) {
  for_earlier_keys(job, earlier, body);
  for_own_keys(job, own, body);
}

/// The job's keys or values: to [keys, padded].
inline void stage_keys(const AttentionJob& job, ConstMatrix own, ConstMatrix EarlierKeys::*earlier, float* to) {
  for_keys(job, own, earlier, [&](std::int64_t key, const float* row) {
    stage_row(row, job.size, 1.0F, job.padded, to + key * job.padded);
  });
}

/// The same transposed: to [key blocks][padded][kKeyBlock], zero past the sequence's end up to a whole register.
inline void stage_keys_transposed(const AttentionJob& job, ConstMatrix own, ConstMatrix EarlierKeys::*earlier,
                                  float* to) {
  const float* rows[kLanes];
  for_keys(job, own, earlier, [&](std::int64_t key, const float* row) {
    const std::int64_t lanes = key % kLanes + 1;
    rows[lanes - 1] = row;
    if (lanes < kLanes && key + 1 < job.keys()) return;
    const std::int64_t first = key + 1 - lanes;
    float* block = to + first / kKeyBlock * kKeyBlock * job.padded + first % kKeyBlock;
    for_lanes(job.size, [&](std::int64_t i, std::int64_t count) {
      Lanes square[kLanes] = {};
      for (std::int64_t lane = 0; lane < lanes; ++lane) square[lane] = load(rows[lane] + i, count);
      transpose(square);
      for (std::int64_t lane = 0; lane < kLanes; ++lane) store(block + (i + lane) * kKeyBlock, square[lane]);
    });
  });
}

/// The rows of a block of queries, of q, out or dout, times `scale`: to [queries · group, padded].
inline void stage_queries(const AttentionJob& job, std::int64_t first, std::int64_t queries, ConstMatrix from,
                          float scale, float* to) {
  for (std::int64_t query = 0; query < queries; ++query) {
    const float* heads = from.row(job.sequence.first + first + query) + job.first_query_column();
    for (std::int64_t g = 0; g < job.group; ++g, to += job.padded) {
      stage_row(heads + g * job.size, job.size, scale, job.padded, to);
    }
  }
}

/// Sets the scores of keys after each query to minus infinity. scores [queries · group, columns], rows kKeyBlock apart.
inline void mask_later_keys(const AttentionJob& job, std::int64_t first_query, std::int64_t queries,
                            std::int64_t first_key, std::int64_t columns, float* scores) {
  for (std::int64_t query = 0; query < queries; ++query) {
    const std::int64_t seen = std::max<std::int64_t>(0, job.earlier + first_query + query - first_key + 1);
    if (seen >= columns) continue;
    for (std::int64_t g = 0; g < job.group; ++g) {
      float* row = scores + (query * job.group + g) * kKeyBlock;
      std::fill(row + seen, row + columns, -std::numeric_limits<float>::infinity());
    }
  }
}

}  // namespace braid::kernels::cpu

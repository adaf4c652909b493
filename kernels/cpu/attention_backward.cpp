#include "kernels/cpu/attention_tiles.h"

namespace braid::kernels::cpu {
namespace {

struct BackwardTiles {
  float* keys;               ///< [keys, padded]
  float* keys_transposed;    ///< see stage_keys_transposed
  float* values_transposed;  ///< the same of v
  float* key_gradients;      ///< [keys, padded]
  float* value_gradients;    ///< [keys, padded]
  float* queries;            ///< [block rows, padded], scaled
  float* out_gradients;      ///< [block rows, padded]
  float* query_gradients;    ///< [block rows, padded], of the scaled queries
  float* weights;            ///< [block rows, kKeyBlock]: the softmax, recomputed
  float* score_gradients;    ///< [block rows, kKeyBlock]
  float* log_sum;            ///< [block rows]
  float* mean;               ///< [block rows]: Σ out · dout, the mean of the weights' gradients

  BackwardTiles(const AttentionJob& job, Pieces& pieces)
      : keys(pieces.take(job.keys() * job.padded)),
        keys_transposed(pieces.take(job.transposed_numbers())),
        values_transposed(pieces.take(job.transposed_numbers())),
        key_gradients(pieces.take(job.keys() * job.padded)),
        value_gradients(pieces.take(job.keys() * job.padded)),
        queries(pieces.take(job.block_rows * job.padded)),
        out_gradients(pieces.take(job.block_rows * job.padded)),
        query_gradients(pieces.take(job.block_rows * job.padded)),
        weights(pieces.take(job.block_rows * kKeyBlock)),
        score_gradients(pieces.take(job.block_rows * kKeyBlock)),
        log_sum(pieces.take(job.block_rows)),
        mean(pieces.take(job.block_rows)) {}
};

void stage_row_statistics(const AttentionJob& job, std::int64_t first, std::int64_t queries, ConstMatrix out,
                          ConstMatrix log_sum, const BackwardTiles& tiles) {
  for (std::int64_t query = 0; query < queries; ++query) {
    const std::int64_t row = job.sequence.first + first + query;
    for (std::int64_t g = 0; g < job.group; ++g) {
      const std::int64_t m = query * job.group + g;
      const float* out_row = out.row(row) + job.first_query_column() + g * job.size;
      Lanes products{};
      for_lanes(job.size, [&](std::int64_t i, std::int64_t count) {
        products += load(out_row + i, count) * load(tiles.out_gradients + m * job.padded + i);
      });
      tiles.mean[m] = sum(products);
      tiles.log_sum[m] = log_sum.row(row)[job.kv_head * job.group + g];
    }
  }
}

/// From scores and the gradients of the weights, in place, to the weights and the gradients of the scores.
void softmax_backward(const BackwardTiles& tiles, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t m = 0; m < rows; ++m) {
    float* weights = tiles.weights + m * kKeyBlock;
    float* gradients = tiles.score_gradients + m * kKeyBlock;
    for (std::int64_t j = 0; j < columns; j += kLanes) {
      const Lanes weight = exponential(load(weights + j) - tiles.log_sum[m]);
      store(weights + j, weight);
      store(gradients + j, weight * (load(gradients + j) - tiles.mean[m]));
    }
  }
}

void write_rows(const float* from, std::int64_t size, float scale, float* to) {
  for_lanes(size, [&](std::int64_t i, std::int64_t count) { store(to + i, load(from + i) * scale, count); });
}

/// Gradients [keys, padded] of the job's keys or values, as far as later chunks have summed them up.
void begin_gradients(const AttentionJob& job, Matrix later, Matrix EarlierKeys::*earlier, float* gradients) {
  std::fill_n(gradients, job.keys() * job.padded, 0.0F);
  for_earlier_keys(job, earlier, [&](std::int64_t key, const float* row) {
    stage_row(row, job.size, 1.0F, job.padded, gradients + key * job.padded);
  });
  for (std::int64_t row = 0; row < later.rows; ++row)
    stage_row(later.row(row) + job.kv_column(), job.size, 1.0F, job.padded,
              gradients + (job.earlier + row) * job.padded);
}

void give_back(const AttentionJob& job, const float* gradients, Matrix own, Matrix EarlierKeys::*earlier) {
  const auto write = [&](std::int64_t key, float* row) {
    write_rows(gradients + key * job.padded, job.size, 1.0F, row);
  };
  for_earlier_keys(job, earlier, write);
  for_own_keys(job, own, write);
}

/// Blocks of queries outermost: their gradients stay in one tile, those of keys and values are summed up over the
/// blocks, query by query from the sample's last on, as chunks of it go backward: so it does not matter where it is
/// cut.
void attend_backward(const AttentionJob& job, ConstMatrix q, ConstMatrix k, ConstMatrix v, ConstMatrix out,
                     ConstMatrix log_sum, ConstMatrix dout, Matrix dq, Matrix dk, Matrix dv) {
  thread_local Scratch scratch;
  Pieces counter;
  BackwardTiles(job, counter);
  Pieces pieces(scratch.at_least(counter.taken()));
  const BackwardTiles tiles(job, pieces);
  stage_keys(job, k, &EarlierKeys::k, tiles.keys);
  stage_keys_transposed(job, k, &EarlierKeys::k, tiles.keys_transposed);
  stage_keys_transposed(job, v, &EarlierKeys::v, tiles.values_transposed);
  begin_gradients(job, job.sequence.later_dk, &EarlierKeys::dk, tiles.key_gradients);
  begin_gradients(job, job.sequence.later_dv, &EarlierKeys::dv, tiles.value_gradients);

  for_query_blocks_backwards(job, [&](std::int64_t first_query, std::int64_t queries) {
    const std::int64_t rows = queries * job.group;
    stage_queries(job, first_query, queries, q, job.scale, tiles.queries);
    stage_queries(job, first_query, queries, dout, 1.0F, tiles.out_gradients);
    stage_row_statistics(job, first_query, queries, out, log_sum, tiles);
    const std::int64_t end = job.earlier + first_query + queries;
    for_key_blocks(end, [&](std::int64_t first_key, std::int64_t keys, std::int64_t columns) {
      tile_product(rows, columns, job.size, {tiles.queries, job.padded, 1},
                   tiles.keys_transposed + first_key * job.padded, kKeyBlock, false, tiles.weights, kKeyBlock);
      tile_product(rows, columns, job.size, {tiles.out_gradients, job.padded, 1},
                   tiles.values_transposed + first_key * job.padded, kKeyBlock, false, tiles.score_gradients,
                   kKeyBlock);
      mask_later_keys(job, first_query, queries, first_key, columns, tiles.weights);
      softmax_backward(tiles, rows, columns);
      const std::int64_t last = rows - 1;
      tile_product(keys, job.padded, rows, {tiles.weights + last * kKeyBlock, 1, -kKeyBlock},
                   tiles.out_gradients + last * job.padded, -job.padded, true,
                   tiles.value_gradients + first_key * job.padded, job.padded);
      tile_product(keys, job.padded, rows, {tiles.score_gradients + last * kKeyBlock, 1, -kKeyBlock},
                   tiles.queries + last * job.padded, -job.padded, true, tiles.key_gradients + first_key * job.padded,
                   job.padded);
      tile_product(rows, job.padded, keys, {tiles.score_gradients, kKeyBlock, 1}, tiles.keys + first_key * job.padded,
                   job.padded, first_key > 0, tiles.query_gradients, job.padded);
    });
    for (std::int64_t m = 0; m < rows; ++m) {
      write_rows(tiles.query_gradients + m * job.padded, job.size, job.scale,
                 dq.row(job.sequence.first + first_query + m / job.group) + job.first_query_column() +
                     m % job.group * job.size);
    }
  });
  give_back(job, tiles.key_gradients, dk, &EarlierKeys::dk);
  give_back(job, tiles.value_gradients, dv, &EarlierKeys::dv);
}

}  // namespace

void attention_backward(const AttentionShape& shape, std::span<const SequenceRows> sequences, ConstMatrix q,
                        ConstMatrix k, ConstMatrix v, ConstMatrix out, ConstMatrix log_sum, ConstMatrix dout, Matrix dq,
                        Matrix dk, Matrix dv) {
  check_attention_shapes(shape, sequences, q, k, v);
  for_attention_jobs(shape, sequences,
                     [&](const AttentionJob& job) { attend_backward(job, q, k, v, out, log_sum, dout, dq, dk, dv); });
}

}  // namespace braid::kernels::cpu

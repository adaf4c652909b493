#include "kernels/cpu/attention_tiles.h"

namespace braid::kernels::cpu {
namespace {

struct ForwardTiles {
  float* keys;         ///< transposed, see stage_keys_transposed
  float* values;       ///< [keys, padded]
  float* queries;      ///< [block rows, padded], scaled
  float* scores;       ///< [block rows, kKeyBlock]
  float* mixed;        ///< [block rows, padded]: Σ exp(score − greatest) value over the keys seen so far
  float* greatest;     ///< [block rows]: of the scores seen so far
  float* denominator;  ///< [block rows]: Σ exp(score − greatest)
  float* correction;   ///< [block rows]: what the sums so far shrink by as `greatest` grows

  ForwardTiles(const AttentionJob& job, Pieces& pieces)
      : keys(pieces.take(job.transposed_numbers())),
        values(pieces.take(job.keys() * job.padded)),
        queries(pieces.take(job.block_rows * job.padded)),
        scores(pieces.take(job.block_rows * kKeyBlock)),
        mixed(pieces.take(job.block_rows * job.padded)),
        greatest(pieces.take(job.block_rows)),
        denominator(pieces.take(job.block_rows)),
        correction(pieces.take(job.block_rows)) {}
};

/// Turns a block of scores into exp(score − greatest), with the sums so far made to fit the new `greatest`.
void exponentiate_scores(const ForwardTiles& tiles, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t m = 0; m < rows; ++m) {
    const float* row = tiles.scores + m * kKeyBlock;
    Lanes most = load(row);
    for (std::int64_t j = kLanes; j < columns; j += kLanes) most = greater(most, load(row + j));
    const float before = tiles.greatest[m];
    tiles.greatest[m] = std::max(before, greatest(most));
    tiles.correction[m] = before - tiles.greatest[m];
  }
  for_lanes(rows, [&](std::int64_t m, std::int64_t count) {
    store(tiles.correction + m, exponential(load(tiles.correction + m, count)), count);
  });
  for (std::int64_t m = 0; m < rows; ++m) {
    float* row = tiles.scores + m * kKeyBlock;
    Lanes total{};
    for (std::int64_t j = 0; j < columns; j += kLanes) {
      const Lanes weight = exponential(load(row + j) - tiles.greatest[m]);
      store(row + j, weight);
      total += weight;
    }
    tiles.denominator[m] = tiles.denominator[m] * tiles.correction[m] + sum(total);
  }
}

void correct_mixed(const AttentionJob& job, const ForwardTiles& tiles, std::int64_t rows) {
  for (std::int64_t m = 0; m < rows; ++m) {
    float* row = tiles.mixed + m * job.padded;
    for (std::int64_t i = 0; i < job.padded; i += kLanes) store(row + i, load(row + i) * tiles.correction[m]);
  }
}

void write_block(const AttentionJob& job, const ForwardTiles& tiles, std::int64_t first, std::int64_t queries,
                 Matrix out, Matrix log_sum) {
  for (std::int64_t query = 0; query < queries; ++query) {
    const std::int64_t row = job.sequence.first + first + query;
    for (std::int64_t g = 0; g < job.group; ++g) {
      const std::int64_t m = query * job.group + g;
      const float share = 1.0F / tiles.denominator[m];
      const float* from = tiles.mixed + m * job.padded;
      float* to = out.row(row) + job.first_query_column() + g * job.size;
      for_lanes(job.size, [&](std::int64_t i, std::int64_t count) { store(to + i, load(from + i) * share, count); });
      log_sum.row(row)[job.kv_head * job.group + g] = tiles.greatest[m] + std::log(tiles.denominator[m]);
    }
  }
}

/// The running softmax of FlashAttention (Dao et al. 2022), one block of queries at a time over the keys they may see.
void attend(const AttentionJob& job, ConstMatrix q, ConstMatrix k, ConstMatrix v, Matrix out, Matrix log_sum) {
  thread_local Scratch scratch;
  Pieces counter;
  ForwardTiles(job, counter);
  Pieces pieces(scratch.at_least(counter.taken()));
  const ForwardTiles tiles(job, pieces);
  stage_keys_transposed(job, k, &EarlierKeys::k, tiles.keys);
  stage_keys(job, v, &EarlierKeys::v, tiles.values);
  for_query_blocks(job, [&](std::int64_t first_query, std::int64_t queries) {
    const std::int64_t rows = queries * job.group;
    stage_queries(job, first_query, queries, q, job.scale, tiles.queries);
    std::fill_n(tiles.greatest, rows, -std::numeric_limits<float>::infinity());
    std::fill_n(tiles.denominator, rows, 0.0F);
    const std::int64_t end = job.earlier + first_query + queries;
    for_key_blocks(end, [&](std::int64_t first_key, std::int64_t keys, std::int64_t columns) {
      tile_product(rows, columns, job.size, {tiles.queries, job.padded, 1}, tiles.keys + first_key * job.padded,
                   kKeyBlock, false, tiles.scores, kKeyBlock);
      mask_later_keys(job, first_query, queries, first_key, columns, tiles.scores);
      exponentiate_scores(tiles, rows, columns);
      if (first_key > 0) correct_mixed(job, tiles, rows);
      tile_product(rows, job.padded, keys, {tiles.scores, kKeyBlock, 1}, tiles.values + first_key * job.padded,
                   job.padded, first_key > 0, tiles.mixed, job.padded);
    });
    write_block(job, tiles, first_query, queries, out, log_sum);
  });
}

}  // namespace

void attention_forward(const AttentionShape& shape, std::span<const SequenceRows> sequences, ConstMatrix q,
                       ConstMatrix k, ConstMatrix v, Matrix out, Matrix log_sum) {
  check_attention_shapes(shape, sequences, q, k, v);
  for_attention_jobs(shape, sequences, [&](const AttentionJob& job) { attend(job, q, k, v, out, log_sum); });
}

}  // namespace braid::kernels::cpu

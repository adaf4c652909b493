#include "kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace braid::kernels::reference {
namespace {

double dot(const float* a, const float* b, std::int64_t count) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

/// The rows of k, v, dk or dv of a sequence's tokens, from its first on, earlier ones included.
template <typename Rows>
auto rows_of(const SequenceRows& sequence, Rows own, Rows EarlierKeys::*earlier) {
  std::vector<decltype(own.row(0))> rows;
  for (const EarlierKeys& keys : sequence.earlier) {
    for (std::int64_t row = 0; row < (keys.*earlier).rows; ++row) rows.push_back((keys.*earlier).row(row));
  }
  for (std::int64_t row = 0; row < sequence.count; ++row) rows.push_back(own.row(sequence.first + row));
  return rows;
}

/// Calls body(query head, its key/value head, row, keys that it sees) for every query of a sequence.
template <typename Body>
void for_each_query(const AttentionShape& shape, const SequenceRows& sequence, std::size_t keys, const Body& body) {
  const std::size_t earlier = keys - static_cast<std::size_t>(sequence.count);
  for (std::int64_t head = 0; head < shape.heads; ++head) {
    const std::int64_t kv_head = head / (shape.heads / shape.kv_heads);
    for (std::int64_t row = 0; row < sequence.count; ++row)
      body(head, kv_head, sequence.first + row, earlier + static_cast<std::size_t>(row) + 1);
  }
}

}  // namespace

void attention_forward(const AttentionShape& shape, std::span<const SequenceRows> sequences, ConstMatrix q,
                       ConstMatrix k, ConstMatrix v, Matrix out, Matrix log_sum) {
  const std::int64_t size = shape.head_dim;
  const double scale = 1.0 / std::sqrt(static_cast<double>(size));
  for (const SequenceRows& sequence : sequences) {
    const auto keys = rows_of(sequence, k, &EarlierKeys::k), values = rows_of(sequence, v, &EarlierKeys::v);
    for_each_query(shape, sequence, keys.size(), [&](auto head, auto kv_head, auto row, std::size_t seen) {
      std::vector<double> scores;
      for (std::size_t key = 0; key < seen; ++key)
        scores.push_back(scale * dot(q.row(row) + head * size, keys[key] + kv_head * size, size));
      const double most = *std::max_element(scores.begin(), scores.end());
      double sum = 0.0;
      for (const double score : scores) sum += std::exp(score - most);
      const double log_of_sum = most + std::log(sum);
      log_sum.row(row)[head] = static_cast<float>(log_of_sum);
      std::vector<double> mixed(static_cast<std::size_t>(size));
      for (std::size_t key = 0; key < seen; ++key) {
        const double weight = std::exp(scores[key] - log_of_sum);
        for (std::int64_t i = 0; i < size; ++i)
          mixed[static_cast<std::size_t>(i)] += weight * values[key][kv_head * size + i];
      }
      std::transform(mixed.begin(), mixed.end(), out.row(row) + head * size,
                     [](double number) { return static_cast<float>(number); });
    });
  }
}

void attention_backward(const AttentionShape& shape, std::span<const SequenceRows> sequences, ConstMatrix q,
                        ConstMatrix k, ConstMatrix v, ConstMatrix out, ConstMatrix log_sum, ConstMatrix dout, Matrix dq,
                        Matrix dk, Matrix dv) {
  const std::int64_t size = shape.head_dim;
  const double scale = 1.0 / std::sqrt(static_cast<double>(size));
  const std::int64_t kv_columns = shape.kv_heads * size;
  for (const SequenceRows& sequence : sequences) {
    const auto keys = rows_of(sequence, k, &EarlierKeys::k), values = rows_of(sequence, v, &EarlierKeys::v);
    std::vector<double> key_gradient(keys.size() * static_cast<std::size_t>(kv_columns));
    std::vector<double> value_gradient(key_gradient.size());
    for_each_query(shape, sequence, keys.size(), [&](auto head, auto kv_head, auto row, std::size_t seen) {
      const float* query = q.row(row) + head * size;
      const float* gradient = dout.row(row) + head * size;
      const double mean = dot(gradient, out.row(row) + head * size, size);
      std::vector<double> query_gradient(static_cast<std::size_t>(size));
      for (std::size_t key = 0; key < seen; ++key) {
        const float* key_row = keys[key] + kv_head * size;
        const double weight = std::exp(scale * dot(query, key_row, size) - log_sum.row(row)[head]);
        const double score_gradient = weight * (dot(gradient, values[key] + kv_head * size, size) - mean) * scale;
        for (std::int64_t i = 0; i < size; ++i) {
          const auto at = key * static_cast<std::size_t>(kv_columns) + static_cast<std::size_t>(kv_head * size + i);
          query_gradient[static_cast<std::size_t>(i)] += score_gradient * key_row[i];
          key_gradient[at] += score_gradient * query[i];
          value_gradient[at] += weight * gradient[i];
        }
      }
      std::transform(query_gradient.begin(), query_gradient.end(), dq.row(row) + head * size,
                     [](double number) { return static_cast<float>(number); });
    });
    const auto give_back = [&](const std::vector<float*>& rows, ConstMatrix later,
                               const std::vector<double>& gradients) {
      const std::size_t earlier = rows.size() - static_cast<std::size_t>(sequence.count);
      for (std::size_t key = 0; key < rows.size(); ++key) {
        for (std::int64_t i = 0; i < kv_columns; ++i) {
          const std::int64_t own = static_cast<std::int64_t>(key) - static_cast<std::int64_t>(earlier);
          const double before = own < 0 ? rows[key][i] : own < later.rows ? later.row(own)[i] : 0.0F;
          rows[key][i] = static_cast<float>(
              before + gradients[key * static_cast<std::size_t>(kv_columns) + static_cast<std::size_t>(i)]);
        }
      }
    };
    give_back(rows_of(sequence, dk, &EarlierKeys::dk), sequence.later_dk, key_gradient);
    give_back(rows_of(sequence, dv, &EarlierKeys::dv), sequence.later_dv, value_gradient);
  }
}

}  // namespace braid::kernels::reference

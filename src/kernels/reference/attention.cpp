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

/// Calls body(query head, its key/value head, the sequence, row) for every query there is.
template <typename Body>
void for_each_query(const AttentionShape& shape, std::span<const SequenceRows> sequences, const Body& body) {
  for (const SequenceRows& sequence : sequences) {
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      const std::int64_t kv_head = head / (shape.heads / shape.kv_heads);
      for (std::int64_t row = sequence.first; row < sequence.first + sequence.count; ++row) {
        body(head, kv_head, sequence, row);
      }
    }
  }
}

}  // namespace

void attention_forward(const AttentionShape& shape, std::span<const SequenceRows> sequences, ConstMatrix q,
                       ConstMatrix k, ConstMatrix v, Matrix out, Matrix log_sum) {
  const std::int64_t size = shape.head_dim;
  const double scale = 1.0 / std::sqrt(static_cast<double>(size));
  for_each_query(shape, sequences, [&](auto head, auto kv_head, const SequenceRows& sequence, auto row) {
    std::vector<double> scores;
    for (std::int64_t key = sequence.first; key <= row; ++key) {
      scores.push_back(scale * dot(q.row(row) + head * size, k.row(key) + kv_head * size, size));
    }
    const double most = *std::max_element(scores.begin(), scores.end());
    double sum = 0.0;
    for (const double score : scores) sum += std::exp(score - most);
    const double log_of_sum = most + std::log(sum);
    log_sum.row(row)[head] = static_cast<float>(log_of_sum);
    std::vector<double> mixed(static_cast<std::size_t>(size));
    for (std::int64_t key = sequence.first; key <= row; ++key) {
      const double weight = std::exp(scores[static_cast<std::size_t>(key - sequence.first)] - log_of_sum);
      for (std::int64_t i = 0; i < size; ++i) {
        mixed[static_cast<std::size_t>(i)] += weight * v.row(key)[kv_head * size + i];
      }
    }
    std::transform(mixed.begin(), mixed.end(), out.row(row) + head * size,
                   [](double number) { return static_cast<float>(number); });
  });
}

void attention_backward(const AttentionShape& shape, std::span<const SequenceRows> sequences, ConstMatrix q,
                        ConstMatrix k, ConstMatrix v, ConstMatrix out, ConstMatrix log_sum, ConstMatrix dout, Matrix dq,
                        Matrix dk, Matrix dv) {
  const std::int64_t size = shape.head_dim;
  const double scale = 1.0 / std::sqrt(static_cast<double>(size));
  const std::int64_t kv_columns = shape.kv_heads * size;
  std::vector<double> key_gradient(static_cast<std::size_t>(k.rows * kv_columns));
  std::vector<double> value_gradient(static_cast<std::size_t>(v.rows * kv_columns));
  for_each_query(shape, sequences, [&](auto head, auto kv_head, const SequenceRows& sequence, auto row) {
    const float* query = q.row(row) + head * size;
    const float* gradient = dout.row(row) + head * size;
    const double mean = dot(gradient, out.row(row) + head * size, size);
    std::vector<double> query_gradient(static_cast<std::size_t>(size));
    for (std::int64_t key = sequence.first; key <= row; ++key) {
      const float* key_row = k.row(key) + kv_head * size;
      const double weight = std::exp(scale * dot(query, key_row, size) - log_sum.row(row)[head]);
      const double score_gradient = weight * (dot(gradient, v.row(key) + kv_head * size, size) - mean) * scale;
      for (std::int64_t i = 0; i < size; ++i) {
        const auto at = static_cast<std::size_t>(key * kv_columns + kv_head * size + i);
        query_gradient[static_cast<std::size_t>(i)] += score_gradient * key_row[i];
        key_gradient[at] += score_gradient * query[i];
        value_gradient[at] += weight * gradient[i];
      }
    }
    std::transform(query_gradient.begin(), query_gradient.end(), dq.row(row) + head * size,
                   [](double number) { return static_cast<float>(number); });
  });
  for (std::int64_t row = 0; row < k.rows; ++row) {
    for (std::int64_t i = 0; i < kv_columns; ++i) {
      const auto at = static_cast<std::size_t>(row * kv_columns + i);
      dk.row(row)[i] = static_cast<float>(key_gradient[at]);
      dv.row(row)[i] = static_cast<float>(value_gradient[at]);
    }
  }
}

}  // namespace braid::kernels::reference

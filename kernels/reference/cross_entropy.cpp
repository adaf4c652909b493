#include "kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>

namespace braid::kernels::reference {

void cross_entropy(Matrix logits, std::span<const std::int32_t> labels, std::span<const float> scales, Vector losses) {
  for (std::int64_t t = 0; t < logits.rows; ++t) {
    float* row = logits.row(t);
    const auto token = static_cast<std::size_t>(t);
    const double most = *std::max_element(row, row + logits.columns);
    double sum = 0.0;
    for (std::int64_t i = 0; i < logits.columns; ++i) sum += std::exp(row[i] - most);
    const double log_sum = most + std::log(sum);
    losses[token] = static_cast<float>(log_sum - row[labels[token]]);
    for (std::int64_t i = 0; i < logits.columns; ++i) {
      const double target = i == labels[token] ? 1.0 : 0.0;
      row[i] = static_cast<float>(scales[token] * (std::exp(row[i] - log_sum) - target));
    }
  }
}

void cross_entropy_share(Matrix logits, std::span<const std::int32_t> labels, Matrix shares) {
  for (std::int64_t t = 0; t < logits.rows; ++t) {
    float* row = logits.row(t);
    float* share = shares.row(t);
    const std::int32_t label = labels[static_cast<std::size_t>(t)];
    const bool here = 0 <= label && label < logits.columns;
    share[0] = *std::max_element(row, row + logits.columns);
    share[2] = here ? row[label] : 0.0F;
    double sum = 0.0;
    for (std::int64_t i = 0; i < logits.columns; ++i) {
      row[i] = std::exp(row[i] - share[0]);
      sum += row[i];
    }
    share[1] = static_cast<float>(sum);
  }
}

void cross_entropy_of_shares(Matrix logits, std::span<const std::int32_t> labels, std::span<const float> scales,
                             ConstMatrix shares, std::int64_t place, Vector losses) {
  for (std::int64_t t = 0; t < logits.rows; ++t) {
    const auto token = static_cast<std::size_t>(t);
    const float* share = shares.row(t);
    double most = share[0], total = 0.0, label_logit = 0.0;
    for (std::int64_t s = 0; s < shares.columns; s += 3) most = std::max(most, static_cast<double>(share[s]));
    for (std::int64_t s = 0; s < shares.columns; s += 3) {
      total += static_cast<double>(share[s + 1]) * std::exp(share[s] - most);
      label_logit += share[s + 2];
    }
    losses[token] = static_cast<float>(most + std::log(total) - label_logit);
    const auto factor = static_cast<float>(scales[token] * std::exp(share[3 * place] - most) / total);
    float* row = logits.row(t);
    for (std::int64_t i = 0; i < logits.columns; ++i) row[i] *= factor;
    if (0 <= labels[token] && labels[token] < logits.columns) row[labels[token]] -= scales[token];
  }
}

}  // namespace braid::kernels::reference

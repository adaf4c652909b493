#include "kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>

namespace braid::kernels::reference {

void cross_entropy(Matrix logits, std::span<const std::int32_t> labels, std::span<const float> scales,
                   std::span<float> losses) {
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

}  // namespace braid::kernels::reference

#include "kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/lanes.h"
#include "kernels/cpu/rows.h"

namespace braid::kernels::cpu {
namespace {

float greatest_of(const float* row, std::int64_t columns) {
  constexpr float kLess = -std::numeric_limits<float>::infinity();
  Lanes most = broadcast(kLess);
  for_lanes(columns, [&](std::int64_t i, std::int64_t count) { most = greater(most, load(row + i, count, kLess)); });
  return greatest(most);
}

/// Turns the row into exp(x − most) and returns the sum. Registers are summed up a few at a time, then in double: a
/// vocabulary is too long for f32 alone.
double exponentiate(float* row, std::int64_t columns, float most) {
  constexpr std::int64_t kTogether = 64 * kLanes;
  double total = 0.0;
  for (std::int64_t first = 0; first < columns; first += kTogether) {
    Lanes some{};
    for_lanes(std::min(kTogether, columns - first), [&](std::int64_t i, std::int64_t count) {
      float* at = row + first + i;
      const Lanes value = exponential(load(at, count, -std::numeric_limits<float>::infinity()) - most);
      store(at, value, count);
      some += value;
    });
    total += sum(some);
  }
  return total;
}

}  // namespace

void cross_entropy(Matrix logits, std::span<const std::int32_t> labels, std::span<const float> scales, Vector losses) {
  BRAID_CHECK(
      std::ssize(labels) == logits.rows && std::ssize(scales) == logits.rows && std::ssize(losses) == logits.rows,
      "{} labels, {} scales and {} losses for {} rows", labels.size(), scales.size(), losses.size(), logits.rows);
  for_rows(logits.rows, kCopies * logits.columns, [&](std::int64_t t) {
    const auto token = static_cast<std::size_t>(t);
    const std::int32_t label = labels[token];
    BRAID_CHECK(0 <= label && label < logits.columns, "label {} of {}", label, logits.columns);
    float* row = logits.row(t);
    const float most = greatest_of(row, logits.columns);
    const double below = static_cast<double>(most) - row[label];
    const double total = exponentiate(row, logits.columns, most);
    losses[token] = static_cast<float>(below + std::log(total));
    const auto factor = static_cast<float>(scales[token] / total);
    for_lanes(logits.columns,
              [&](std::int64_t i, std::int64_t count) { store(row + i, load(row + i, count) * factor, count); });
    row[label] -= scales[token];
  });
}

void cross_entropy_share(Matrix logits, std::span<const std::int32_t> labels, Matrix shares) {
  for_rows(logits.rows, kCopies * logits.columns, [&](std::int64_t t) {
    float* row = logits.row(t);
    float* share = shares.row(t);
    const std::int32_t label = labels[static_cast<std::size_t>(t)];
    const bool here = 0 <= label && label < logits.columns;
    share[0] = greatest_of(row, logits.columns);
    share[2] = here ? row[label] : 0.0F;
    share[1] = static_cast<float>(exponentiate(row, logits.columns, share[0]));
  });
}

void cross_entropy_of_shares(Matrix logits, std::span<const std::int32_t> labels, std::span<const float> scales,
                             ConstMatrix shares, std::int64_t place, Vector losses) {
  for_rows(logits.rows, kCopies * logits.columns, [&](std::int64_t t) {
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
    for_lanes(logits.columns,
              [&](std::int64_t i, std::int64_t count) { store(row + i, load(row + i, count) * factor, count); });
    if (0 <= labels[token] && labels[token] < logits.columns) row[labels[token]] -= scales[token];
  });
}

}  // namespace braid::kernels::cpu

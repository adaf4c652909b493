#include "kernels/layer_norm.h"

#include <cmath>

#include "kernels/cpu/rows.h"
#include "kernels/cpu/sum_lanes.h"

namespace braid::kernels::cpu {
namespace {

void check_shapes(ConstMatrix x, ConstVector weight, ConstMatrix statistics, ConstMatrix result) {
  BRAID_CHECK(std::ssize(weight) == x.columns && statistics.rows == x.rows && statistics.columns == 2,
              "{} weights and [{}, {}] statistics for [{}, {}]", weight.size(), statistics.rows, statistics.columns,
              x.rows, x.columns);
  BRAID_CHECK(result.rows == x.rows && result.columns == x.columns, "[{}, {}] to [{}, {}]", x.rows, x.columns,
              result.rows, result.columns);
}

/// The numbers from i on less the mean; 0 past the row's end, so that they add nothing to a sum.
Lanes centred(const float* row, float mean, std::int64_t i, std::int64_t count) {
  return load(row + i, count, mean) - mean;
}

void normalize_row(const float* x, const float* weight, const float* bias, float mean, float scale,
                   std::int64_t columns, float* y) {
  for_lanes(columns, [&](std::int64_t i, std::int64_t count) {
    store(y + i, centred(x, mean, i, count) * scale * load(weight + i, count) + load(bias + i, count), count);
  });
}

}  // namespace

void layer_norm_forward(ConstMatrix x, ConstVector weight, ConstVector bias, float epsilon, Matrix y,
                        Matrix statistics) {
  check_shapes(x, weight, statistics, y);
  const auto columns = static_cast<float>(x.columns);
  for_rows(x.rows, kCopies * x.columns, [&](std::int64_t t) {
    const float* row = x.row(t);
    const float mean =
        sum_lanes(x.columns, [&](std::int64_t i, std::int64_t count) { return load(row + i, count); }) / columns;
    const float squares = sum_lanes(x.columns, [&](std::int64_t i, std::int64_t count) {
      const Lanes off = centred(row, mean, i, count);
      return off * off;
    });
    const float scale = 1.0F / std::sqrt(squares / columns + epsilon);
    statistics.row(t)[0] = mean;
    statistics.row(t)[1] = scale;
    normalize_row(row, weight.data(), bias.data(), mean, scale, x.columns, y.row(t));
  });
}

void layer_norm_again(ConstMatrix x, ConstVector weight, ConstVector bias, ConstMatrix statistics, Matrix y) {
  check_shapes(x, weight, statistics, y);
  for_rows(x.rows, kCopies * x.columns, [&](std::int64_t t) {
    const float* of_row = statistics.row(t);
    normalize_row(x.row(t), weight.data(), bias.data(), of_row[0], of_row[1], x.columns, y.row(t));
  });
}

void layer_norm_backward(ConstMatrix dy, ConstMatrix x, ConstVector weight, ConstMatrix statistics, Matrix dx) {
  check_shapes(x, weight, statistics, dx);
  const auto columns = static_cast<float>(x.columns);
  for_rows(x.rows, kCopies * x.columns, [&](std::int64_t t) {
    const float mean = statistics.row(t)[0], scale = statistics.row(t)[1];
    const auto weighted = [&](std::int64_t i, std::int64_t count) {
      return load(dy.row(t) + i, count) * load(weight.data() + i, count);
    };
    const auto normed = [&](std::int64_t i, std::int64_t count) { return centred(x.row(t), mean, i, count) * scale; };
    const float sum = sum_lanes(x.columns, weighted);
    const float products =
        sum_lanes(x.columns, [&](std::int64_t i, std::int64_t count) { return weighted(i, count) * normed(i, count); });
    const float mean_gradient = sum / columns, mean_product = products / columns;
    float* to = dx.row(t);
    for_lanes(x.columns, [&](std::int64_t i, std::int64_t count) {
      const Lanes through = scale * (weighted(i, count) - mean_gradient - normed(i, count) * mean_product);
      store(to + i, load(to + i, count) + through, count);
    });
  });
}

}  // namespace braid::kernels::cpu

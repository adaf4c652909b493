#include "kernels/rms_norm.h"

#include <cmath>

#include "kernels/cpu/lanes.h"
#include "kernels/cpu/rows.h"

namespace braid::kernels::cpu {
namespace {

void check_shapes(ConstMatrix x, std::span<const float> weight, std::span<const float> scale, ConstMatrix result) {
  BRAID_CHECK(std::ssize(weight) == x.columns && std::ssize(scale) == x.rows, "{} weights and {} scales for [{}, {}]",
              weight.size(), scale.size(), x.rows, x.columns);
  BRAID_CHECK(result.rows == x.rows && result.columns == x.columns, "[{}, {}] to [{}, {}]", x.rows, x.columns,
              result.rows, result.columns);
}

/// Σ term(i, count) over a row, in four sums, as one would wait for itself.
template <typename Term>
float sum_lanes(std::int64_t columns, const Term& term) {
  Lanes sums[4] = {};
  for_lanes(columns, [&](std::int64_t i, std::int64_t count) { sums[i / kLanes % 4] += term(i, count); });
  return sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

void normalize_row(const float* x, const float* weight, float scale, std::int64_t columns, float* y) {
  for_lanes(columns, [&](std::int64_t i, std::int64_t count) {
    store(y + i, load(x + i, count) * scale * load(weight + i, count), count);
  });
}

}  // namespace

void rms_norm_forward(ConstMatrix x, std::span<const float> weight, float epsilon, Matrix y, std::span<float> scale) {
  check_shapes(x, weight, scale, y);
  for_rows(x.rows, kCopies * x.columns, [&](std::int64_t t) {
    const float* row = x.row(t);
    const float squares = sum_lanes(x.columns, [&](std::int64_t i, std::int64_t count) {
      const Lanes value = load(row + i, count);
      return value * value;
    });
    const float row_scale = 1.0F / std::sqrt(squares / static_cast<float>(x.columns) + epsilon);
    scale[static_cast<std::size_t>(t)] = row_scale;
    normalize_row(row, weight.data(), row_scale, x.columns, y.row(t));
  });
}

void rms_norm_again(ConstMatrix x, std::span<const float> weight, std::span<const float> scale, Matrix y) {
  check_shapes(x, weight, scale, y);
  for_rows(x.rows, kCopies * x.columns, [&](std::int64_t t) {
    normalize_row(x.row(t), weight.data(), scale[static_cast<std::size_t>(t)], x.columns, y.row(t));
  });
}

void rms_norm_backward(ConstMatrix dy, ConstMatrix x, std::span<const float> weight, std::span<const float> scale,
                       Matrix dx) {
  check_shapes(x, weight, scale, dx);
  for_rows(x.rows, kCopies * x.columns, [&](std::int64_t t) {
    const float* row = x.row(t);
    const float* gradients = dy.row(t);
    float* to = dx.row(t);
    const auto weighted = [&](std::int64_t i, std::int64_t count) {
      return load(gradients + i, count) * load(weight.data() + i, count);
    };
    const float products = sum_lanes(
        x.columns, [&](std::int64_t i, std::int64_t count) { return weighted(i, count) * load(row + i, count); });
    const float row_scale = scale[static_cast<std::size_t>(t)];
    const float through_scale = row_scale * row_scale * products / static_cast<float>(x.columns);
    for_lanes(x.columns, [&](std::int64_t i, std::int64_t count) {
      const Lanes through = row_scale * (weighted(i, count) - load(row + i, count) * through_scale);
      store(to + i, load(to + i, count) + through, count);
    });
  });
}

}  // namespace braid::kernels::cpu

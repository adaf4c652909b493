#include "kernels/rms_norm.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/rows.h"
#include "kernels/cpu/sum_lanes.h"

namespace braid::kernels::cpu {
namespace {

void check_shapes(ConstMatrix x, ConstVector weight, ConstVector scale, ConstMatrix result) {
  BRAID_CHECK(std::ssize(weight) == x.columns && std::ssize(scale) == x.rows, "{} weights and {} scales for [{}, {}]",
              weight.size(), scale.size(), x.rows, x.columns);
  BRAID_CHECK(result.rows == x.rows && result.columns == x.columns, "[{}, {}] to [{}, {}]", x.rows, x.columns,
              result.rows, result.columns);
}

float scale_of(const float* row, std::int64_t columns, float epsilon) {
  const float squares = sum_lanes(columns, [&](std::int64_t i, std::int64_t count) {
    const Lanes value = load(row + i, count);
    return value * value;
  });
  return 1.0F / std::sqrt(squares / static_cast<float>(columns) + epsilon);
}

void normalize_row(const float* x, const float* weight, float scale, std::int64_t columns, float* y) {
  for_lanes(columns, [&](std::int64_t i, std::int64_t count) {
    store(y + i, load(x + i, count) * scale * load(weight + i, count), count);
  });
}

/// Calls `take`(i, gradient, count) with the gradient of x's numbers from i on, of which there are `count`.
template <typename Take>
void through_norm(const float* dy, const float* x, const float* weight, float scale, std::int64_t columns,
                  const Take& take) {
  const auto weighted = [&](std::int64_t i, std::int64_t count) {
    return load(dy + i, count) * load(weight + i, count);
  };
  const float products =
      sum_lanes(columns, [&](std::int64_t i, std::int64_t count) { return weighted(i, count) * load(x + i, count); });
  const float through_scale = scale * scale * products / static_cast<float>(columns);
  for_lanes(columns, [&](std::int64_t i, std::int64_t count) {
    const Lanes through = scale * (weighted(i, count) - load(x + i, count) * through_scale);
    take(i, through, count);
  });
}

void check_heads(ConstMatrix x, ConstVector weight, ConstMatrix before, ConstMatrix scale) {
  BRAID_CHECK(std::ssize(weight) * scale.columns == x.columns && scale.rows == x.rows && before.rows == x.rows &&
                  before.columns == x.columns,
              "{} weights and [{}, {}] scales for [{}, {}]", weight.size(), scale.rows, scale.columns, x.rows,
              x.columns);
}

}  // namespace

void rms_norm_forward(ConstMatrix x, ConstVector weight, float epsilon, Matrix y, Vector scale) {
  check_shapes(x, weight, scale, y);
  for_rows(x.rows, kCopies * x.columns, [&](std::int64_t t) {
    const float* row = x.row(t);
    const float row_scale = scale_of(row, x.columns, epsilon);
    scale[static_cast<std::size_t>(t)] = row_scale;
    normalize_row(row, weight.data(), row_scale, x.columns, y.row(t));
  });
}

void rms_norm_again(ConstMatrix x, ConstVector weight, ConstVector scale, Matrix y) {
  check_shapes(x, weight, scale, y);
  for_rows(x.rows, kCopies * x.columns, [&](std::int64_t t) {
    normalize_row(x.row(t), weight.data(), scale[static_cast<std::size_t>(t)], x.columns, y.row(t));
  });
}

void rms_norm_backward(ConstMatrix dy, ConstMatrix x, ConstVector weight, ConstVector scale, Matrix dx) {
  check_shapes(x, weight, scale, dx);
  for_rows(x.rows, kCopies * x.columns, [&](std::int64_t t) {
    float* to = dx.row(t);
    through_norm(dy.row(t), x.row(t), weight.data(), scale[static_cast<std::size_t>(t)], x.columns,
                 [&](std::int64_t i, Lanes through, std::int64_t count) {
                   store(to + i, load(to + i, count) + through, count);
                 });
  });
}

void head_norm_forward(Matrix x, ConstVector weight, float epsilon, Matrix before, Matrix scale) {
  check_heads(x, weight, before, scale);
  const auto width = static_cast<std::int64_t>(weight.size());
  for_rows(x.rows, kCopies * x.columns, [&](std::int64_t t) {
    std::copy_n(x.row(t), x.columns, before.row(t));
    for (std::int64_t head = 0; head < scale.columns; ++head) {
      const float* from = before.row(t) + head * width;
      scale.row(t)[head] = scale_of(from, width, epsilon);
      normalize_row(from, weight.data(), scale.row(t)[head], width, x.row(t) + head * width);
    }
  });
}

void head_norm_backward(Matrix d, ConstMatrix before, ConstVector weight, ConstMatrix scale) {
  check_heads(d, weight, before, scale);
  const auto width = static_cast<std::int64_t>(weight.size());
  for_rows(d.rows, kCopies * d.columns, [&](std::int64_t t) {
    for (std::int64_t head = 0; head < scale.columns; ++head) {
      float* gradient = d.row(t) + head * width;
      through_norm(gradient, before.row(t) + head * width, weight.data(), scale.row(t)[head], width,
                   [&](std::int64_t i, Lanes through, std::int64_t count) { store(gradient + i, through, count); });
    }
  });
}

}  // namespace braid::kernels::cpu

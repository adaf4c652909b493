#include "kernels/rms_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace braid::kernels::reference {

void rms_norm_forward(ConstMatrix x, ConstVector weight, float epsilon, Matrix y, Vector scale) {
  for (std::int64_t t = 0; t < x.rows; ++t) {
    double sum = 0.0;
    for (std::int64_t i = 0; i < x.columns; ++i) sum += static_cast<double>(x.row(t)[i]) * x.row(t)[i];
    scale[static_cast<std::size_t>(t)] =
        static_cast<float>(1.0 / std::sqrt(sum / static_cast<double>(x.columns) + epsilon));
  }
  rms_norm_again(x, weight, scale, y);
}

void rms_norm_again(ConstMatrix x, ConstVector weight, ConstVector scale, Matrix y) {
  for (std::int64_t t = 0; t < x.rows; ++t) {
    const double row_scale = scale[static_cast<std::size_t>(t)];
    for (std::int64_t i = 0; i < x.columns; ++i)
      y.row(t)[i] = static_cast<float>(x.row(t)[i] * row_scale * weight[static_cast<std::size_t>(i)]);
  }
}

void rms_norm_backward(ConstMatrix dy, ConstMatrix x, ConstVector weight, ConstVector scale, Matrix dx) {
  for (std::int64_t t = 0; t < x.rows; ++t) {
    const double row_scale = scale[static_cast<std::size_t>(t)];
    const auto weighted = [&](std::int64_t i) {
      return static_cast<double>(dy.row(t)[i]) * weight[static_cast<std::size_t>(i)];
    };
    double mean = 0.0;
    for (std::int64_t i = 0; i < x.columns; ++i) mean += weighted(i) * x.row(t)[i] / static_cast<double>(x.columns);
    for (std::int64_t i = 0; i < x.columns; ++i) {
      const double through = row_scale * (weighted(i) - x.row(t)[i] * row_scale * row_scale * mean);
      dx.row(t)[i] = static_cast<float>(dx.row(t)[i] + through);
    }
  }
}

void head_norm_forward(Matrix x, ConstVector weight, float epsilon, Matrix before, Matrix scale) {
  const auto width = static_cast<std::int64_t>(weight.size());
  for (std::int64_t t = 0; t < x.rows; ++t) {
    for (std::int64_t i = 0; i < x.columns; ++i) before.row(t)[i] = x.row(t)[i];
    for (std::int64_t head = 0; head < scale.columns; ++head) {
      const std::int64_t first = head * width, last = first + width;
      rms_norm_forward(before.column_range(first, last).row_range(t, t + 1), weight, epsilon,
                       x.column_range(first, last).row_range(t, t + 1), {scale.row(t) + head, 1});
    }
  }
}

void head_norm_backward(Matrix d, ConstMatrix before, ConstVector weight, ConstMatrix scale) {
  const auto width = static_cast<std::int64_t>(weight.size());
  for (std::int64_t t = 0; t < d.rows; ++t) {
    for (std::int64_t head = 0; head < scale.columns; ++head) {
      const std::int64_t first = head * width, last = first + width;
      std::vector<float> gradient(d.row(t) + first, d.row(t) + last);
      std::fill(d.row(t) + first, d.row(t) + last, 0.0F);
      rms_norm_backward({gradient.data(), 1, width}, before.column_range(first, last).row_range(t, t + 1), weight,
                        {scale.row(t) + head, 1}, d.column_range(first, last).row_range(t, t + 1));
    }
  }
}

}  // namespace braid::kernels::reference

#include "kernels/rms_norm.h"

#include <cmath>

namespace braid::kernels::reference {

void rms_norm_forward(ConstMatrix x, std::span<const float> weight, float epsilon, Matrix y, std::span<float> scale) {
  for (std::int64_t t = 0; t < x.rows; ++t) {
    double sum = 0.0;
    for (std::int64_t i = 0; i < x.columns; ++i) sum += static_cast<double>(x.row(t)[i]) * x.row(t)[i];
    const double row_scale = 1.0 / std::sqrt(sum / static_cast<double>(x.columns) + epsilon);
    scale[static_cast<std::size_t>(t)] = static_cast<float>(row_scale);
    for (std::int64_t i = 0; i < x.columns; ++i) {
      y.row(t)[i] = static_cast<float>(x.row(t)[i] * row_scale * weight[static_cast<std::size_t>(i)]);
    }
  }
}

void rms_norm_backward(ConstMatrix dy, ConstMatrix x, std::span<const float> weight, std::span<const float> scale,
                       Matrix dx) {
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

}  // namespace braid::kernels::reference

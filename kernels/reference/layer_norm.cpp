#include "kernels/layer_norm.h"

#include <cmath>

namespace braid::kernels::reference {

void layer_norm_forward(ConstMatrix x, ConstVector weight, ConstVector bias, float epsilon, Matrix y,
                        Matrix statistics) {
  const auto count = static_cast<double>(x.columns);
  for (std::int64_t t = 0; t < x.rows; ++t) {
    double mean = 0.0, squares = 0.0;
    for (std::int64_t i = 0; i < x.columns; ++i) mean += x.row(t)[i] / count;
    for (std::int64_t i = 0; i < x.columns; ++i) squares += (x.row(t)[i] - mean) * (x.row(t)[i] - mean);
    statistics.row(t)[0] = static_cast<float>(mean);
    statistics.row(t)[1] = static_cast<float>(1.0 / std::sqrt(squares / count + epsilon));
  }
  layer_norm_again(x, weight, bias, statistics, y);
}

void layer_norm_again(ConstMatrix x, ConstVector weight, ConstVector bias, ConstMatrix statistics, Matrix y) {
  for (std::int64_t t = 0; t < x.rows; ++t) {
    const double mean = statistics.row(t)[0], scale = statistics.row(t)[1];
    for (std::int64_t i = 0; i < x.columns; ++i) {
      const auto place = static_cast<std::size_t>(i);
      y.row(t)[i] = static_cast<float>((x.row(t)[i] - mean) * scale * weight[place] + bias[place]);
    }
  }
}

void layer_norm_backward(ConstMatrix dy, ConstMatrix x, ConstVector weight, ConstMatrix statistics, Matrix dx) {
  const auto count = static_cast<double>(x.columns);
  for (std::int64_t t = 0; t < x.rows; ++t) {
    const double mean = statistics.row(t)[0], scale = statistics.row(t)[1];
    const auto weighted = [&](std::int64_t i) {
      return static_cast<double>(dy.row(t)[i]) * weight[static_cast<std::size_t>(i)];
    };
    const auto normed = [&](std::int64_t i) { return (x.row(t)[i] - mean) * scale; };
    double sum = 0.0, products = 0.0;
    for (std::int64_t i = 0; i < x.columns; ++i) {
      sum += weighted(i);
      products += weighted(i) * normed(i);
    }
    for (std::int64_t i = 0; i < x.columns; ++i) {
      const double through = scale * (weighted(i) - sum / count - normed(i) * products / count);
      dx.row(t)[i] = static_cast<float>(dx.row(t)[i] + through);
    }
  }
}

}  // namespace braid::kernels::reference

#include "kernels/activation.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace braid::kernels::reference {
namespace {

constexpr double kCubic = 0.044715;

/// f and its derivative at x.
struct Point {
  double value = 0, slope = 0;
};

Point silu(double x) {
  const double sigmoid = 1.0 / (1.0 + std::exp(-x));
  return {x * sigmoid, sigmoid * (1.0 + x * (1.0 - sigmoid))};
}

Point gelu(double x) {
  const double factor = std::sqrt(2.0 / std::numbers::pi);
  const double bend = std::tanh(factor * (x + kCubic * x * x * x));
  const double bend_slope = (1.0 - bend * bend) * factor * (1.0 + 3.0 * kCubic * x * x);
  return {0.5 * x * (1.0 + bend), 0.5 * (1.0 + bend) + 0.5 * x * bend_slope};
}

Point relu(double x) {
  return {std::max(0.0, x), x > 0 ? 1.0 : 0.0};
}

Point at(Activation kind, double x) {
  switch (kind) {
    case Activation::swiglu:
    case Activation::silu:
      return silu(x);
    case Activation::geglu:
    case Activation::gelu:
      return gelu(x);
    case Activation::relu:
      break;
  }
  return relu(x);
}

}  // namespace

void activation_forward(Activation kind, ConstMatrix x, Matrix y) {
  for (std::int64_t t = 0; t < y.rows; ++t) {
    for (std::int64_t i = 0; i < y.columns; ++i) {
      const double up = has_gate(kind) ? x.row(t)[y.columns + i] : 1.0;
      y.row(t)[i] = static_cast<float>(at(kind, x.row(t)[i]).value * up);
    }
  }
}

void activation_backward(Activation kind, ConstMatrix dy, ConstMatrix x, Matrix dx) {
  for (std::int64_t t = 0; t < dy.rows; ++t) {
    for (std::int64_t i = 0; i < dy.columns; ++i) {
      const Point point = at(kind, x.row(t)[i]);
      const double gradient = dy.row(t)[i];
      const double up = has_gate(kind) ? x.row(t)[dy.columns + i] : 1.0;
      dx.row(t)[i] = static_cast<float>(gradient * up * point.slope);
      if (has_gate(kind)) dx.row(t)[dy.columns + i] = static_cast<float>(gradient * point.value);
    }
  }
}

}  // namespace braid::kernels::reference

#include "kernels/activation.h"

#include "kernels/cpu/lanes.h"
#include "kernels/cpu/rows.h"

namespace braid::kernels::cpu {
namespace {

Lanes sigmoid(Lanes x) {
  return 1.0F / (1.0F + exponential(-x));
}

struct Silu {
  static Lanes value(Lanes x) { return x * sigmoid(x); }
  /// Of f and its derivative.
  static void both(Lanes x, Lanes& value, Lanes& slope) {
    const Lanes open = sigmoid(x);
    value = x * open;
    slope = open + value * (1.0F - open);
  }
};

/// (1 + tanh(u)) / 2 is sigmoid(2u).
struct Gelu {
  static constexpr float kFactor = 1.5957691216F;  // 2 √(2/π)
  static constexpr float kCubic = 0.044715F;
  static Lanes twice_u(Lanes x) { return kFactor * (x + kCubic * x * x * x); }
  static Lanes value(Lanes x) { return x * sigmoid(twice_u(x)); }
  static void both(Lanes x, Lanes& value, Lanes& slope) {
    const Lanes shrunk = exponential(-twice_u(x));
    const Lanes part = 1.0F / (1.0F + shrunk);
    // 1 − part would be what cancellation leaves of it, and the cubic term makes that large.
    const Lanes rest = x > 0.0F ? shrunk * part : 1.0F - part;
    value = x * part;
    slope = part + value * rest * (kFactor * (1.0F + 3.0F * kCubic * x * x));
  }
};

struct Relu {
  static Lanes value(Lanes x) { return x > 0.0F ? x : Lanes{}; }
  static void both(Lanes x, Lanes& value_of, Lanes& slope) {
    value_of = value(x);
    slope = x > 0.0F ? broadcast(1.0F) : Lanes{};
  }
};

void check_shapes(Activation kind, ConstMatrix x, ConstMatrix y) {
  BRAID_CHECK(x.rows == y.rows && x.columns == (has_gate(kind) ? 2 : 1) * y.columns, "[{}, {}] to [{}, {}]", x.rows,
              x.columns, y.rows, y.columns);
}

template <typename Function, bool gated>
void forward_rows(ConstMatrix x, Matrix y) {
  for_rows(y.rows, kCopies * y.columns, [&](std::int64_t t) {
    const float* from = x.row(t);
    float* to = y.row(t);
    for_lanes(y.columns, [&](std::int64_t i, std::int64_t count) {
      Lanes result = Function::value(load(from + i, count));
      if constexpr (gated) result = result * load(from + y.columns + i, count);
      store(to + i, result, count);
    });
  });
}

template <typename Function, bool gated>
void backward_rows(ConstMatrix dy, ConstMatrix x, Matrix dx) {
  for_rows(dy.rows, kCopies * dy.columns, [&](std::int64_t t) {
    const float* gradients = dy.row(t);
    const float* from = x.row(t);
    float* to = dx.row(t);
    for_lanes(dy.columns, [&](std::int64_t i, std::int64_t count) {
      const Lanes gradient = load(gradients + i, count);
      Lanes value, slope;
      Function::both(load(from + i, count), value, slope);
      if constexpr (gated) {
        const Lanes up = load(from + dy.columns + i, count);
        store(to + i, gradient * up * slope, count);
        store(to + dy.columns + i, gradient * value, count);
      } else {
        store(to + i, gradient * slope, count);
      }
    });
  });
}

}  // namespace

void activation_forward(Activation kind, ConstMatrix x, Matrix y) {
  check_shapes(kind, x, y);
  switch (kind) {
    case Activation::swiglu:
      return forward_rows<Silu, true>(x, y);
    case Activation::geglu:
      return forward_rows<Gelu, true>(x, y);
    case Activation::gelu:
      return forward_rows<Gelu, false>(x, y);
    case Activation::silu:
      return forward_rows<Silu, false>(x, y);
    case Activation::relu:
      return forward_rows<Relu, false>(x, y);
  }
}

void activation_backward(Activation kind, ConstMatrix dy, ConstMatrix x, Matrix dx) {
  check_shapes(kind, x, dy);
  check_shapes(kind, dx, dy);
  switch (kind) {
    case Activation::swiglu:
      return backward_rows<Silu, true>(dy, x, dx);
    case Activation::geglu:
      return backward_rows<Gelu, true>(dy, x, dx);
    case Activation::gelu:
      return backward_rows<Gelu, false>(dy, x, dx);
    case Activation::silu:
      return backward_rows<Silu, false>(dy, x, dx);
    case Activation::relu:
      return backward_rows<Relu, false>(dy, x, dx);
  }
}

}  // namespace braid::kernels::cpu

#include <cmath>

#include "kernels/activation.h"
#include "kernels/cuda/simt.h"

namespace braid::kernels::cuda {
namespace {

/// f(x) and its slope.
struct Value {
  float f, slope;
};

__device__ Value silu(float x) {
  const float sigmoid = 1.0F / (1.0F + expf(-x));
  return {x * sigmoid, sigmoid * (1.0F + x * (1.0F - sigmoid))};
}

__device__ Value gelu(float x) {
  constexpr float kRoot = 0.7978845608028654F, kCube = 0.044715F;  // sqrt(2/pi)
  const float inner = tanhf(kRoot * (x + kCube * x * x * x));
  const float slope = 0.5F * (1.0F + inner) + 0.5F * x * (1.0F - inner * inner) * kRoot * (1.0F + 3.0F * kCube * x * x);
  return {0.5F * x * (1.0F + inner), slope};
}

__device__ Value value(Activation kind, float x) {
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
  return x > 0 ? Value{x, 1} : Value{0, 0};
}

template <typename Number>
struct Activate {
  Activation kind;
  bool gated;
  View<const Number> x;
  View<Number> y;
  __device__ void operator()(std::int64_t row, std::int64_t i) const {
    const float f = value(kind, x(row, i)).f;
    y.set(row, i, gated ? f * x(row, y.columns + i) : f);
  }
};

template <typename Number>
struct ActivateBack {
  Activation kind;
  bool gated;
  View<const Number> dy, x;
  View<Number> dx;
  __device__ void operator()(std::int64_t row, std::int64_t i) const {
    const float d = dy(row, i);
    const Value at = value(kind, x(row, i));
    if (!gated) {
      dx.set(row, i, d * at.slope);
      return;
    }
    const float up = x(row, dy.columns + i);
    dx.set(row, i, d * up * at.slope);
    dx.set(row, dy.columns + i, d * at.f);
  }
};

}  // namespace

void activation_forward(Activation kind, ConstMatrix x, Matrix y) {
  with_type(x.type, [&]<typename Number>(Number) {
    for_each(y.rows, y.columns, Activate<Number>{kind, has_gate(kind), view<const Number>(x), view<Number>(y)});
  });
}

void activation_backward(Activation kind, ConstMatrix dy, ConstMatrix x, Matrix dx) {
  with_type(x.type, [&]<typename Number>(Number) {
    for_each(
        dy.rows, dy.columns,
        ActivateBack<Number>{kind, has_gate(kind), view<const Number>(dy), view<const Number>(x), view<Number>(dx)});
  });
}

}  // namespace braid::kernels::cuda

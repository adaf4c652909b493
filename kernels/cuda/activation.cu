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
  template <int count>
  __device__ void at(std::int64_t row, std::int64_t i) const {
    Several<count> f = x.template load<count>(row, i);
    Several<count> up{};
    if (gated) up = x.template load<count>(row, y.columns + i);
#pragma unroll
    for (int j = 0; j < count; ++j) f[j] = value(kind, f[j]).f * (gated ? up[j] : 1.0F);
    y.store(row, i, f);
  }
};

template <typename Number>
struct ActivateBack {
  Activation kind;
  bool gated;
  View<const Number> dy, x;
  View<Number> dx;
  template <int count>
  __device__ void at(std::int64_t row, std::int64_t i) const {
    Several<count> d = dy.template load<count>(row, i), first = x.template load<count>(row, i), up{};
    if (gated) up = x.template load<count>(row, dy.columns + i);
#pragma unroll
    for (int j = 0; j < count; ++j) {
      const Value there = value(kind, first[j]);
      first[j] = d[j] * (gated ? up[j] : 1.0F) * there.slope;
      d[j] *= there.f;
    }
    dx.store(row, i, first);
    if (gated) dx.store(row, dy.columns + i, d);
  }
};

}  // namespace

void activation_forward(Activation kind, ConstMatrix x, Matrix y) {
  with_type(x.type, [&]<typename Number>(Number) {
    const Activate<Number> activate{kind, has_gate(kind), view<const Number>(x), view<Number>(y)};
    for_several(y.rows, y.columns, activate, activate.x, activate.y);
  });
}

void activation_backward(Activation kind, ConstMatrix dy, ConstMatrix x, Matrix dx) {
  with_type(x.type, [&]<typename Number>(Number) {
    const ActivateBack<Number> back{kind, has_gate(kind), view<const Number>(dy), view<const Number>(x),
                                    view<Number>(dx)};
    for_several(dy.rows, dy.columns, back, back.dy, back.x, back.dx);
  });
}

}  // namespace braid::kernels::cuda

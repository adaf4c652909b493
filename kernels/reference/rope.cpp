#include "kernels/rope.h"

#include <cmath>

namespace braid::kernels::reference {
namespace {

void turn(Matrix x, std::int64_t head_dim, std::span<const std::int32_t> positions, ConstVector frequencies,
          double scale, double direction) {
  const std::int64_t half = head_dim / 2;
  for (std::int64_t t = 0; t < x.rows; ++t) {
    for (std::int64_t i = 0; i < half; ++i) {
      // The product is rounded to f32 as Hugging Face's is: backbones are trained with these very angles.
      const float angle =
          static_cast<float>(positions[static_cast<std::size_t>(t)]) * frequencies[static_cast<std::size_t>(i)];
      const double cosine = scale * std::cos(static_cast<double>(angle));
      const double sine = direction * scale * std::sin(static_cast<double>(angle));
      for (float* head = x.row(t); head < x.row(t) + x.columns; head += head_dim) {
        const double low = head[i];
        const double high = head[i + half];
        head[i] = static_cast<float>(low * cosine - high * sine);
        head[i + half] = static_cast<float>(high * cosine + low * sine);
      }
    }
  }
}

}  // namespace

void rope_forward(Matrix x, std::int64_t head_dim, std::span<const std::int32_t> positions, ConstVector frequencies,
                  float scale) {
  turn(x, head_dim, positions, frequencies, scale, 1.0);
}

void rope_backward(Matrix x, std::int64_t head_dim, std::span<const std::int32_t> positions, ConstVector frequencies,
                   float scale) {
  turn(x, head_dim, positions, frequencies, scale, -1.0);
}

}  // namespace braid::kernels::reference

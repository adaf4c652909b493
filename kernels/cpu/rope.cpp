#include "kernels/rope.h"

#include <cmath>
#include <vector>

#include "kernels/cpu/lanes.h"
#include "kernels/cpu/rows.h"

namespace braid::kernels::cpu {
namespace {

void turn_head(const float* cosines, const float* sines, std::int64_t half, float* head) {
  for_lanes(half, [&](std::int64_t i, std::int64_t count) {
    const Lanes low = load(head + i, count), high = load(head + half + i, count);
    const Lanes cosine = load(cosines + i, count), sine = load(sines + i, count);
    store(head + i, low * cosine - high * sine, count);
    store(head + half + i, high * cosine + low * sine, count);
  });
}

void turn(Matrix x, std::int64_t head_dim, std::span<const std::int32_t> positions, ConstVector frequencies,
          float scale, float direction) {
  const std::int64_t half = head_dim / 2;
  BRAID_CHECK(head_dim > 0 && head_dim % 2 == 0 && x.columns % head_dim == 0, "heads of {} in {} columns", head_dim,
              x.columns);
  BRAID_CHECK(std::ssize(positions) == x.rows && std::ssize(frequencies) == half,
              "{} positions for {} rows, {} frequencies for heads of {}", positions.size(), x.rows, frequencies.size(),
              head_dim);
  for_rows(x.rows, kCopies * x.columns, [&](std::int64_t t) {
    thread_local std::vector<float> turns;
    turns.resize(static_cast<std::size_t>(2 * half));
    float* cosines = turns.data();
    float* sines = cosines + half;
    for (std::int64_t i = 0; i < half; ++i) {
      // Rounded to f32 as Hugging Face's product is.
      const float angle =
          static_cast<float>(positions[static_cast<std::size_t>(t)]) * frequencies[static_cast<std::size_t>(i)];
      cosines[i] = scale * std::cos(angle);
      sines[i] = direction * scale * std::sin(angle);
    }
    for (float* head = x.row(t); head < x.row(t) + x.columns; head += head_dim) turn_head(cosines, sines, half, head);
  });
}

}  // namespace

void rope_forward(Matrix x, std::int64_t head_dim, std::span<const std::int32_t> positions, ConstVector frequencies,
                  float scale) {
  turn(x, head_dim, positions, frequencies, scale, 1.0F);
}

void rope_backward(Matrix x, std::int64_t head_dim, std::span<const std::int32_t> positions, ConstVector frequencies,
                   float scale) {
  turn(x, head_dim, positions, frequencies, scale, -1.0F);
}

}  // namespace braid::kernels::cpu

#include <cmath>

#include "kernels/cuda/simt.h"
#include "kernels/rope.h"

namespace braid::kernels::cuda {
namespace {

/// Heads go by in so many groups, each with one sine and cosine of a row's pair.
constexpr unsigned kHeadGroups = 4;

/// Of a row, each pair (i, i + D/2) of each head; `direction` −1 turns back.
template <typename Number>
struct Turn {
  View<Number> x;
  unsigned half, heads;
  const std::int32_t* positions;
  const float* frequencies;
  float scale, direction;
  __device__ void operator()(std::int64_t row, std::int64_t place) const {
    const unsigned i = static_cast<unsigned>(place) % half, group = static_cast<unsigned>(place) / half;
    const float angle = static_cast<float>(positions[row]) * frequencies[i];
    const float cosine = cosf(angle) * scale, sine = direction * sinf(angle) * scale;
    for (unsigned head = group; head < heads; head += kHeadGroups) {
      const std::int64_t first = head * 2 * half + i, second = first + half;
      const float a = x(row, first), b = x(row, second);
      x.set(row, first, a * cosine - b * sine);
      x.set(row, second, b * cosine + a * sine);
    }
  }
};

void turn(Matrix x, std::int64_t head_dim, std::span<const std::int32_t> positions, ConstVector frequencies,
          float scale, float direction) {
  BRAID_CHECK(std::ssize(positions) == x.rows && x.columns % head_dim == 0, "{} positions of [{}, {}], heads of {}",
              positions.size(), x.rows, x.columns, head_dim);
  const Numbers<std::int32_t> staged(positions);
  with_type(x.type, [&]<typename Number>(Number) {
    const auto half = static_cast<unsigned>(head_dim / 2), heads = static_cast<unsigned>(x.columns / head_dim);
    for_each(x.rows, std::int64_t{half} * kHeadGroups,
             Turn<Number>{view<Number>(x), half, heads, staged.data(), frequencies.data(), scale, direction});
  });
}

}  // namespace

void rope_forward(Matrix x, std::int64_t head_dim, std::span<const std::int32_t> positions, ConstVector frequencies,
                  float scale) {
  turn(x, head_dim, positions, frequencies, scale, 1);
}

void rope_backward(Matrix x, std::int64_t head_dim, std::span<const std::int32_t> positions, ConstVector frequencies,
                   float scale) {
  turn(x, head_dim, positions, frequencies, scale, -1);
}

}  // namespace braid::kernels::cuda

#include "kernels/cuda/drops.h"
#include "kernels/dropout.h"

namespace braid::kernels::cuda {
namespace {

/// Four numbers that share a draw.
template <typename X, typename Y>
struct DropFour {
  View<const X> x;
  View<Y> y;
  Drops drops;
  bool accumulate;
  __device__ void operator()(std::int64_t row, std::int64_t four) const {
    const std::int64_t draw = drops.first_column / 4 + four;
    const std::uint32_t kept = drops.kept_of(row, draw);
    for (std::int64_t j = 0; j < 4; ++j) {
      const std::int64_t i = 4 * draw + j - drops.first_column;
      if (i < 0 || i >= x.columns) continue;
      const float number = (kept >> j & 1U) == 0 ? 0.0F : x(row, i) * drops.scale;
      y.set(row, i, accumulate ? y(row, i) + number : number);
    }
  }
};

}  // namespace

void dropout(const DropoutRows& rows, ConstMatrix x, bool accumulate, Matrix y) {
  BRAID_CHECK(std::ssize(rows.positions) == x.rows && std::ssize(rows.samples) == x.rows, "{} positions of {} rows",
              rows.positions.size(), x.rows);
  const Numbers<std::int32_t> positions(rows.positions);
  const Numbers<std::int64_t> samples(rows.samples);
  Drops drops = drops_of(rows);
  drops.positions = positions.data(), drops.samples = samples.data();
  const std::int64_t first = rows.first_column / 4, last = (rows.first_column + x.columns + 3) / 4;
  with_type(x.type, [&]<typename X>(X) {
    with_type(y.type, [&]<typename Y>(Y) {
      for_each(x.rows, last - first, DropFour<X, Y>{view<const X>(x), view<Y>(y), drops, accumulate});
    });
  });
}

}  // namespace braid::kernels::cuda

#include "kernels/columns.h"

#include "kernels/cpu/lanes.h"
#include "kernels/cpu/rows.h"

namespace braid::kernels::cpu {

void scale_columns(ConstVector scale, ConstMatrix x, bool accumulate, Matrix y) {
  BRAID_CHECK(std::ssize(scale) == y.columns && x.rows == y.rows && x.columns == y.columns, "{} scales, [{}, {}] to {}",
              scale.size(), x.rows, x.columns, y.columns);
  for_rows(y.rows, kCopies * y.columns, [&](std::int64_t t) {
    const float* from = x.row(t);
    float* to = y.row(t);
    for_lanes(y.columns, [&](std::int64_t i, std::int64_t count) {
      Lanes result = load(scale.data() + i, count) * load(from + i, count);
      if (accumulate) result += load(to + i, count);
      store(to + i, result, count);
    });
  });
}

void add_row(float factor, ConstVector row, Matrix y) {
  BRAID_CHECK(std::ssize(row) == y.columns, "{} numbers to rows of {}", row.size(), y.columns);
  for_rows(y.rows, kCopies * y.columns, [&](std::int64_t t) {
    float* to = y.row(t);
    for_lanes(y.columns, [&](std::int64_t i, std::int64_t count) {
      store(to + i, load(to + i, count) + factor * load(row.data() + i, count), count);
    });
  });
}

/// Threads share out columns, so that a sum is one thread's.
void sum_columns(float factor, ConstMatrix a, ConstMatrix b, Vector sums) {
  BRAID_CHECK(std::ssize(sums) == a.columns && (b.rows == 0 || (b.rows == a.rows && b.columns == a.columns)),
              "{} sums of [{}, {}] and [{}, {}]", sums.size(), a.rows, a.columns, b.rows, b.columns);
  const std::int64_t registers = (a.columns + kLanes - 1) / kLanes;
  for_rows(registers, kCopies * kLanes * a.rows, [&](std::int64_t place) {
    const std::int64_t i = place * kLanes, count = std::min(kLanes, a.columns - i);
    Lanes sum = {};
    for (std::int64_t t = 0; t < a.rows; ++t) {
      const Lanes number = load(a.row(t) + i, count);
      sum += b.rows > 0 ? number * load(b.row(t) + i, count) : number;
    }
    float* to = sums.data() + i;
    store(to, load(to, count) + factor * sum, count);
  });
}

}  // namespace braid::kernels::cpu

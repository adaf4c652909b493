#include "kernels/sparse.h"

#include <vector>

#include "kernels/cpu/rows.h"

namespace braid::kernels::cpu {
namespace {

/// Those numbers of the matrix that count, by their places in x and y.
struct Counted {
  std::vector<std::int32_t> rows, columns;
  std::vector<std::size_t> places;
};

Counted counted(const SparsePlaces& all) {
  Counted some;
  for (std::size_t k = 0; k < all.rows.size(); ++k) {
    if (!all.counts(k)) continue;
    some.rows.push_back(static_cast<std::int32_t>(all.rows[k] - all.first_row));
    some.columns.push_back(static_cast<std::int32_t>(all.columns[k] - all.first_column));
    some.places.push_back(k);
  }
  return some;
}

/// A number that is gathered takes as long as so many that are copied.
constexpr std::int64_t kGathered = 2 * kCopies;

}  // namespace

void sparse_forward(const SparsePlaces& places, ConstVector values, ConstMatrix x, Matrix y) {
  const Counted some = counted(places);
  std::vector<float> numbers;
  for (const std::size_t k : some.places) numbers.push_back(values[k]);
  const std::size_t count = numbers.size();
  for_rows(y.rows, kGathered * static_cast<std::int64_t>(count), [&](std::int64_t t) {
    const float* from = x.row(t);
    float* to = y.row(t);
    for (std::size_t k = 0; k < count;) {
      const std::int32_t row = some.rows[k];
      float sum = 0;
      for (; k < count && some.rows[k] == row; ++k) sum += numbers[k] * from[some.columns[k]];
      to[row] += sum;
    }
  });
}

/// Threads share out the numbers for their gradients, and the tokens for those of x, so that a sum is one thread's.
void sparse_backward(const SparsePlaces& places, ConstVector values, ConstMatrix x, ConstMatrix dy, Vector d_values,
                     Matrix dx) {
  const Counted some = counted(places);
  const auto count = static_cast<std::int64_t>(some.places.size());
  constexpr std::int64_t kBlock = 512;
  for_rows((count + kBlock - 1) / kBlock, kGathered * kBlock * dy.rows, [&](std::int64_t block) {
    const std::int64_t first = block * kBlock, last = std::min(count, first + kBlock);
    float sums[kBlock] = {};
    const std::int32_t* rows = some.rows.data() + first;
    const std::int32_t* columns = some.columns.data() + first;
    for (std::int64_t t = 0; t < dy.rows; ++t) {
      const float* gradient = dy.row(t);
      const float* from = x.row(t);
      for (std::int64_t k = 0; k < last - first; ++k) sums[k] += gradient[rows[k]] * from[columns[k]];
    }
    for (std::int64_t k = first; k < last; ++k) d_values[some.places[static_cast<std::size_t>(k)]] += sums[k - first];
  });
  if (dx.rows == 0) return;
  for_rows(dx.rows, kGathered * count, [&](std::int64_t t) {
    const float* gradient = dy.row(t);
    float* to = dx.row(t);
    for (std::size_t k = 0; k < some.places.size(); ++k)
      to[some.columns[k]] += values[some.places[k]] * gradient[some.rows[k]];
  });
}

}  // namespace braid::kernels::cpu

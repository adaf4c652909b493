#include "kernels/cuda/simt.h"
#include "kernels/dropout.h"

namespace braid::kernels::cuda {
namespace {

struct Words {
  std::uint32_t word[4];
};

/// philox of base/random.h.
__device__ Words philox_words(Words counter, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53U} * counter.word[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57U} * counter.word[2];
    counter = {
        {static_cast<std::uint32_t>(product1 >> 32) ^ counter.word[1] ^ key0, static_cast<std::uint32_t>(product1),
         static_cast<std::uint32_t>(product0 >> 32) ^ counter.word[3] ^ key1, static_cast<std::uint32_t>(product0)}};
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return counter;
}

/// Four numbers that share a draw.
template <typename X, typename Y>
struct DropFour {
  View<const X> x;
  View<Y> y;
  const std::int32_t* positions;
  const std::int64_t* samples;
  std::uint64_t key, dropped_below;
  std::int64_t first_column;
  float scale;
  bool accumulate;
  __device__ void operator()(std::int64_t row, std::int64_t four) const {
    const std::int64_t draw = first_column / 4 + four;
    const auto sample = static_cast<std::uint64_t>(samples[row]);
    const Words words = philox_words({{static_cast<std::uint32_t>(draw), static_cast<std::uint32_t>(positions[row]),
                                       static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(sample >> 32)}},
                                     static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32));
    for (std::int64_t j = 0; j < 4; ++j) {
      const std::int64_t i = 4 * draw + j - first_column;
      if (i < 0 || i >= x.columns) continue;
      const float number = words.word[j] < dropped_below ? 0.0F : x(row, i) * scale;
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
  // A word below p · 2³² is one below the next whole number.
  const double bound = static_cast<double>(rows.probability) * 0x1p32;
  auto dropped_below = static_cast<std::uint64_t>(bound);
  if (static_cast<double>(dropped_below) < bound) ++dropped_below;
  const std::int64_t first = rows.first_column / 4, last = (rows.first_column + x.columns + 3) / 4;
  with_type(x.type, [&]<typename X>(X) {
    with_type(y.type, [&]<typename Y>(Y) {
      for_each(x.rows, last - first,
               DropFour<X, Y>{view<const X>(x), view<Y>(y), positions.data(), samples.data(), rows.key, dropped_below,
                              rows.first_column, 1.0F / (1.0F - rows.probability), accumulate});
    });
  });
}

}  // namespace braid::kernels::cuda

#include "kernels/dropout.h"

#include "base/random.h"

namespace braid::kernels::reference {

void dropout(const DropoutRows& rows, ConstMatrix x, bool accumulate, Matrix y) {
  const double dropped_below = static_cast<double>(rows.probability) * 0x1p32;
  const float scale = 1.0F / (1.0F - rows.probability);
  for (std::int64_t t = 0; t < x.rows; ++t) {
    const auto position = static_cast<std::uint32_t>(rows.positions[static_cast<std::size_t>(t)]);
    const auto sample = static_cast<std::uint64_t>(rows.samples[static_cast<std::size_t>(t)]);
    for (std::int64_t i = 0; i < x.columns; ++i) {
      const std::int64_t j = rows.first_column + i;
      const auto words = philox({static_cast<std::uint32_t>(j / 4), position, static_cast<std::uint32_t>(sample),
                                 static_cast<std::uint32_t>(sample >> 32)},
                                {static_cast<std::uint32_t>(rows.key), static_cast<std::uint32_t>(rows.key >> 32)});
      const bool dropped = static_cast<double>(words[static_cast<std::size_t>(j % 4)]) < dropped_below;
      const float value = dropped ? 0.0F : x.row(t)[i] * scale;
      y.row(t)[i] = accumulate ? y.row(t)[i] + value : value;
    }
  }
}

}  // namespace braid::kernels::reference

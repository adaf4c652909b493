#include "kernels/compressed.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/parallel.h"
#include "kernels/nf4.h"

namespace braid::kernels {
namespace {

constexpr std::int64_t kBlock = 64;
constexpr float kMostInt8 = 127.0F;

constexpr std::array<float, 16> kNormalFloats = nf4_numbers();

std::int64_t blocks_of(std::int64_t columns) {
  return (columns + kBlock - 1) / kBlock;
}
std::int64_t pairs_of(std::int64_t columns) {
  return (columns + 1) / 2;
}

std::uint16_t to_bf16(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

float from_bf16(std::uint16_t half) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}

/// The place of the nearest; between two that of the lower, as bitsandbytes' comparisons have it.
std::uint8_t nearest_normal_float(float number) {
  std::uint8_t place = 0;
  while (place < 15 && number > (kNormalFloats[place] + kNormalFloats[place + 1U]) / 2) ++place;
  return place;
}

float absolute_maximum(const float* numbers, std::int64_t count) {
  float most = 0;
  for (std::int64_t i = 0; i < count; ++i) most = std::max(most, std::abs(numbers[i]));
  return most;
}

}  // namespace

CompressedWeight::CompressedWeight(ConstMatrix weight, WeightType type)
    : type_(type), rows_(weight.rows), columns_(weight.columns) {
  BRAID_CHECK(type != WeightType::f32, "f32 weights are not compressed");
  const auto size = [](std::int64_t count) { return static_cast<std::size_t>(count); };
  if (type == WeightType::bf16) halves_.resize(size(rows_ * columns_));
  if (type == WeightType::int8) bytes_.resize(size(rows_ * columns_)), scales_.resize(size(rows_));
  if (type == WeightType::nf4)
    pairs_.resize(size(rows_ * pairs_of(columns_))), scales_.resize(size(rows_ * blocks_of(columns_)));
  parallel_for(rows_, 16, [&](std::int64_t row) {
    const float* from = weight.row(row);
    if (type == WeightType::bf16) {
      std::transform(from, from + columns_, halves_.begin() + row * columns_, to_bf16);
    } else if (type == WeightType::int8) {
      const float most = scales_[size(row)] = absolute_maximum(from, columns_);
      std::transform(from, from + columns_, bytes_.begin() + row * columns_, [&](float number) {
        return static_cast<std::int8_t>(most > 0 ? std::nearbyint(number * (kMostInt8 / most)) : 0);
      });
    } else {
      for (std::int64_t i = 0; i < columns_; ++i) {
        if (i % kBlock == 0)
          scales_[size(row * blocks_of(columns_) + i / kBlock)] =
              absolute_maximum(from + i, std::min(kBlock, columns_ - i));
        const float most = scales_[size(row * blocks_of(columns_) + i / kBlock)];
        const std::uint8_t place = nearest_normal_float(most > 0 ? from[i] * (1.0F / most) : 0.0F);
        std::uint8_t& pair = pairs_[size(row * pairs_of(columns_) + i / 2)];
        pair = static_cast<std::uint8_t>(i % 2 == 0 ? place : pair | place << 4);
      }
    }
  });
}

std::vector<std::span<std::byte>> CompressedWeight::storage() {
  return {std::as_writable_bytes(std::span(halves_)), std::as_writable_bytes(std::span(bytes_)),
          std::as_writable_bytes(std::span(pairs_)), std::as_writable_bytes(std::span(scales_))};
}

std::int64_t CompressedWeight::bytes() const {
  return std::ssize(halves_) * 2 + std::ssize(bytes_) + std::ssize(pairs_) +
         std::ssize(scales_) * static_cast<std::int64_t>(sizeof(float));
}

void CompressedWeight::widen_row(std::int64_t row, std::int64_t first, std::int64_t count, float* to) const {
  if (type_ == WeightType::bf16) {
    const std::uint16_t* from = halves_.data() + row * columns_ + first;
    for (std::int64_t i = 0; i < count; ++i) to[i] = from_bf16(from[i]);
    return;
  }
  if (type_ == WeightType::int8) {
    const std::int8_t* from = bytes_.data() + row * columns_ + first;
    const float scale = scales_[static_cast<std::size_t>(row)] / kMostInt8;
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]) * scale;
    return;
  }
  const std::uint8_t* from = pairs_.data() + row * pairs_of(columns_);
  const float* scales = scales_.data() + row * blocks_of(columns_);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t place = first + i;
    const int four = place % 2 == 0 ? from[place / 2] & 15 : from[place / 2] >> 4;
    to[i] = kNormalFloats[static_cast<std::size_t>(four)] * scales[place / kBlock];
  }
}

void CompressedWeight::widen(std::int64_t first_row, std::int64_t first_column, Matrix to) const {
  parallel_for(to.rows, 8,
               [&](std::int64_t row) { widen_row(first_row + row, first_column, to.columns, to.row(row)); });
}

}  // namespace braid::kernels

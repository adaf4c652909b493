#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/matrix.h"

namespace braid::kernels {

/// How a frozen weight is held. Products are of f32: what is held otherwise is widened as it is used.
enum class WeightType {
  f32,
  bf16,  ///< rounded to the nearest, ties to even
  int8,  ///< of each row (output) an absolute maximum m, and round(127 w / m): w ≈ q m / 127 (LLM.int8())
  nf4    ///< of each 64 numbers of a row an absolute maximum m, and the nearest of 16 numbers to w / m (QLoRA)
};

/// A weight [out, in] so held. int8 and NF4 are bitsandbytes' arithmetic, but that rows, not the whole weight, are cut
/// into blocks of 64, which is the same where 64 divides in.
class CompressedWeight {
 public:
  CompressedWeight(ConstMatrix weight, WeightType type);

  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  std::int64_t bytes() const;
  std::vector<std::span<std::byte>> storage();
  /// Rows [first_row, first_row + to.rows) and columns [first_column, first_column + to.columns) as f32.
  void widen(std::int64_t first_row, std::int64_t first_column, Matrix to) const;

 private:
  void widen_row(std::int64_t row, std::int64_t first, std::int64_t count, float* to) const;

  WeightType type_;
  std::int64_t rows_, columns_;
  std::vector<std::uint16_t> halves_;  // bf16
  std::vector<std::int8_t> bytes_;     // int8
  std::vector<std::uint8_t> pairs_;    // NF4, two numbers a byte, rows begin on bytes
  std::vector<float> scales_;          // of rows, or of blocks row after row
};

}  // namespace braid::kernels

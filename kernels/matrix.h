#pragma once

#include <cstdint>
#include <type_traits>

#include "base/error.h"

namespace braid::kernels {

/// A row-major [rows, columns] view of f32 numbers; rows are `stride` numbers apart. No ownership, no alignment needed.
template <typename Number>
struct BasicMatrix {
  Number* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t stride = 0;

  BasicMatrix() = default;
  BasicMatrix(Number* numbers, std::int64_t row_count, std::int64_t column_count)
      : BasicMatrix(numbers, row_count, column_count, column_count) {}
  BasicMatrix(Number* numbers, std::int64_t row_count, std::int64_t column_count, std::int64_t row_stride)
      : data(numbers), rows(row_count), columns(column_count), stride(row_stride) {}
  /// A view that may write is also one that may only read.
  template <typename Writable>
  requires(std::is_same_v<const Writable, Number>) BasicMatrix(const BasicMatrix<Writable>& other)
      : BasicMatrix(other.data, other.rows, other.columns, other.stride) {}

  Number* row(std::int64_t r) const { return data + r * stride; }
  BasicMatrix row_range(std::int64_t first, std::int64_t last) const {
    BRAID_CHECK(0 <= first && first <= last && last <= rows, "rows {}..{} of {}", first, last, rows);
    return BasicMatrix(row(first), last - first, columns, stride);
  }
  BasicMatrix column_range(std::int64_t first, std::int64_t last) const {
    BRAID_CHECK(0 <= first && first <= last && last <= columns, "columns {}..{} of {}", first, last, columns);
    return BasicMatrix(data + first, rows, last - first, stride);
  }
};

using Matrix = BasicMatrix<float>;
using ConstMatrix = BasicMatrix<const float>;

}  // namespace braid::kernels

#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <type_traits>

#include "base/error.h"
#include "costmodel/shapes/data_type.h"

namespace braid::kernels {

/// A view of numbers of a device, one after another. No ownership.
template <typename Number>
class BasicVector {
 public:
  BasicVector() = default;
  BasicVector(Number* numbers, std::int64_t count) : data_(numbers), size_(count) {}
  /// Of a device whose memory is the host's; and a view that may write is also one that may only read.
  template <typename Range>
  requires(std::ranges::contiguous_range<Range> && !std::is_same_v<std::remove_cvref_t<Range>, BasicVector> &&
           std::is_convertible_v<std::remove_reference_t<std::ranges::range_reference_t<Range>> (*)[], Number (*)[]>)
      BasicVector(Range&& range)
      : BasicVector(std::ranges::data(range), static_cast<std::int64_t>(std::ranges::size(range))) {}

  Number* data() const { return data_; }
  std::size_t size() const { return static_cast<std::size_t>(size_); }
  bool empty() const { return size_ == 0; }
  BasicVector range(std::int64_t first, std::int64_t last) const {
    BRAID_CHECK(0 <= first && first <= last && last <= size_, "numbers {}..{} of {}", first, last, size_);
    return BasicVector(data_ + first, last - first);
  }

  /// Where the device's memory is the host's.
  std::span<Number> span() const { return {data_, size()}; }
  // For kernels that run where the numbers are.
  Number& operator[](std::size_t place) const { return data_[place]; }
  Number* begin() const { return data_; }
  Number* end() const { return data_ + size_; }

 private:
  Number* data_ = nullptr;
  std::int64_t size_ = 0;
};

using Vector = BasicVector<float>;
using ConstVector = BasicVector<const float>;

/// A row-major [rows, columns] view of numbers; rows are `stride` numbers apart. No ownership, no alignment needed.
/// Numbers are f32 unless `type` says that what stands at `data` is bf16, as activations of a GPU may be: what runs on
/// the host's processor is given f32 alone.
template <typename Number>
struct BasicMatrix {
  Number* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t stride = 0;
  costmodel::DataType type = costmodel::DataType::f32;

  BasicMatrix() = default;
  BasicMatrix(Number* numbers, std::int64_t row_count, std::int64_t column_count)
      : BasicMatrix(numbers, row_count, column_count, column_count) {}
  BasicMatrix(Number* numbers, std::int64_t row_count, std::int64_t column_count, std::int64_t row_stride,
              costmodel::DataType number_type = costmodel::DataType::f32)
      : data(numbers), rows(row_count), columns(column_count), stride(row_stride), type(number_type) {}
  /// A view that may write is also one that may only read.
  template <typename Writable>
  requires(std::is_same_v<const Writable, Number>) BasicMatrix(const BasicMatrix<Writable>& other)
      : BasicMatrix(other.data, other.rows, other.columns, other.stride, other.type) {}

  /// Of f32 numbers.
  Number* row(std::int64_t r) const { return data + r * stride; }
  BasicMatrix row_range(std::int64_t first, std::int64_t last) const {
    BRAID_CHECK(0 <= first && first <= last && last <= rows, "rows {}..{} of {}", first, last, rows);
    return BasicMatrix(at(first * stride), last - first, columns, stride, type);
  }
  BasicMatrix column_range(std::int64_t first, std::int64_t last) const {
    BRAID_CHECK(0 <= first && first <= last && last <= columns, "columns {}..{} of {}", first, last, columns);
    return BasicMatrix(at(first), rows, last - first, stride, type);
  }

 private:
  Number* at(std::int64_t number) const {
    using Byte = std::conditional_t<std::is_const_v<Number>, const std::byte, std::byte>;
    return reinterpret_cast<Number*>(reinterpret_cast<Byte*>(data) + number * costmodel::bytes_of(type));
  }
};

using Matrix = BasicMatrix<float>;
using ConstMatrix = BasicMatrix<const float>;

}  // namespace braid::kernels

#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "base/parallel.h"
#include "base/random.h"
#include "kernels/matrix.h"

namespace braid::kernels::testing {

/// A matrix that owns its numbers. Its rows are `gap` numbers apart and begin off any vector's alignment, and what lies
/// between and around them is NaN: a kernel that reads it spoils its result, one that writes it is found out.
class OwnedMatrix {
 public:
  OwnedMatrix(std::int64_t rows, std::int64_t columns, std::int64_t gap = 3, std::int64_t offset = 1)
      : rows_(rows), columns_(columns), stride_(columns + gap), offset_(offset), numbers_(size(), kGuard) {
    for (std::int64_t row = 0; row < rows; ++row) std::fill_n(view().row(row), columns, 0.0F);
  }

  Matrix view() { return Matrix(numbers_.data() + offset_, rows_, columns_, stride_); }
  ConstMatrix view() const { return ConstMatrix(numbers_.data() + offset_, rows_, columns_, stride_); }
  operator Matrix() { return view(); }
  operator ConstMatrix() const { return view(); }
  float& at(std::int64_t row, std::int64_t column) { return view().row(row)[column]; }
  float at(std::int64_t row, std::int64_t column) const { return view().row(row)[column]; }
  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }

  bool guards_untouched() const {
    OwnedMatrix emptied = *this;
    for (std::int64_t row = 0; row < rows_; ++row) std::fill_n(emptied.view().row(row), columns_, kGuard);
    const std::vector<float> guards(size(), kGuard);
    return std::memcmp(emptied.numbers_.data(), guards.data(), size() * sizeof(float)) == 0;
  }

 private:
  static constexpr float kGuard = std::numeric_limits<float>::quiet_NaN();
  std::size_t size() const { return static_cast<std::size_t>(rows_ * stride_ + offset_ + 16); }

  std::int64_t rows_, columns_, stride_, offset_;
  std::vector<float> numbers_;
};

inline void fill_normal(Matrix matrix, RandomStream& random, float deviation = 1.0F) {
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (std::int64_t i = 0; i < matrix.columns; ++i) {
      matrix.row(row)[i] = deviation * static_cast<float>(random.next_normal());
    }
  }
}

inline OwnedMatrix normal_matrix(RandomStream& random, std::int64_t rows, std::int64_t columns, std::int64_t gap = 3) {
  OwnedMatrix matrix(rows, columns, gap);
  fill_normal(matrix, random);
  return matrix;
}

inline std::vector<float> normal_vector(RandomStream& random, std::int64_t count) {
  std::vector<float> numbers(static_cast<std::size_t>(count));
  fill_normal(Matrix(numbers.data(), 1, count), random);
  return numbers;
}

inline ConstMatrix as_row(std::span<const float> numbers) {
  return ConstMatrix(numbers.data(), 1, std::ssize(numbers));
}

/// Equal within `tolerance` of the greatest number expected (or of 1, where that is less).
inline ::testing::AssertionResult near(ConstMatrix actual, ConstMatrix expected, double tolerance) {
  double most = 1.0;
  for (std::int64_t row = 0; row < expected.rows; ++row) {
    for (std::int64_t i = 0; i < expected.columns; ++i) most = std::max(most, std::abs(double{expected.row(row)[i]}));
  }
  for (std::int64_t row = 0; row < expected.rows; ++row) {
    for (std::int64_t i = 0; i < expected.columns; ++i) {
      const double difference = std::abs(double{actual.row(row)[i]} - expected.row(row)[i]);
      if (difference <= tolerance * most) continue;
      return ::testing::AssertionFailure() << "[" << row << ", " << i << "] is " << actual.row(row)[i] << ", not "
                                           << expected.row(row)[i] << " within " << tolerance << " of " << most;
    }
  }
  return ::testing::AssertionSuccess();
}

inline ::testing::AssertionResult same_bits(ConstMatrix actual, ConstMatrix expected) {
  for (std::int64_t row = 0; row < expected.rows; ++row) {
    for (std::int64_t i = 0; i < expected.columns; ++i) {
      if (std::memcmp(actual.row(row) + i, expected.row(row) + i, sizeof(float)) == 0) continue;
      return ::testing::AssertionFailure() << "[" << row << ", " << i << "] is " << actual.row(row)[i] << ", not "
                                           << expected.row(row)[i] << " to the bit";
    }
  }
  return ::testing::AssertionSuccess();
}

/// Runs `body` on that many threads, then goes back to as many as there were.
template <typename Body>
void with_threads(int threads, const Body& body) {
  const int before = thread_count();
  set_thread_count(threads);
  body();
  set_thread_count(before);
}

/// Σ a · b in double: with fixed random `b`, a scalar to differentiate.
inline double inner_product(ConstMatrix a, ConstMatrix b) {
  double sum = 0.0;
  for (std::int64_t row = 0; row < a.rows; ++row) {
    for (std::int64_t i = 0; i < a.columns; ++i) sum += static_cast<double>(a.row(row)[i]) * b.row(row)[i];
  }
  return sum;
}

/// The gradient of `loss` with respect to x by central differences.
inline OwnedMatrix finite_differences(Matrix x, const std::function<double()>& loss, float step = 1e-2F) {
  OwnedMatrix gradient(x.rows, x.columns);
  for (std::int64_t row = 0; row < x.rows; ++row) {
    for (std::int64_t i = 0; i < x.columns; ++i) {
      const float here = x.row(row)[i];
      x.row(row)[i] = here + step;
      const double above = loss();
      const float upper = x.row(row)[i];
      x.row(row)[i] = here - step;
      const double below = loss();
      const float lower = x.row(row)[i];
      x.row(row)[i] = here;
      gradient.at(row, i) = static_cast<float>((above - below) / (static_cast<double>(upper) - lower));
    }
  }
  return gradient;
}

}  // namespace braid::kernels::testing

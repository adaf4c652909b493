#pragma once

#include "kernels/matrix.h"

namespace braid::kernels {

/// Sums that do not depend on the order of their terms: of each number a part in multiples of 2^-22 and one in
/// multiples of 2^-56. A term is rounded to these first, so that as doubles all additions are exact (Demmel and Nguyen
/// 2013, pre-rounding). Each sum is within 2^-57 of the exact one for each of its terms, for at most 2^20 terms of at
/// most 2^29.
struct ExactSums {
  double* high = nullptr;
  double* low = nullptr;  ///< both [rows, columns], rows `stride` apart, on the host
  std::int64_t rows = 0, columns = 0, stride = 0;

  static constexpr std::int64_t kMostTerms = std::int64_t{1} << 20;
};

/// sums[i, j] += Σ_t (alpha · a[t, i]) · b[t, j], where alpha · a is rounded to f32 and the products are not. a [T, M],
/// b [T, N], sums [M, N]. Of devices whose memory is the host's.
using OuterSums = void(float alpha, ConstMatrix a, ConstMatrix b, ExactSums sums);

namespace reference {
OuterSums outer_sums;
}  // namespace reference
namespace cpu {
OuterSums outer_sums;
}  // namespace cpu

/// Adds a term to one of such sums.
inline void add_exactly(double term, double& high, double& low) {
  // Added and taken away again, 1.5 · 2^52 multiples leave a whole number of them.
  constexpr double kHigh = 0x1.8p52 * 0x1p-22, kLow = 0x1.8p52 * 0x1p-56;
  const double rounded = (term + kHigh) - kHigh;
  high += rounded;
  low += ((term - rounded) + kLow) - kLow;
}

}  // namespace braid::kernels

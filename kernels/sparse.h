#pragma once

#include <cstdint>
#include <span>

#include "kernels/matrix.h"

namespace braid::kernels {

/// A sparse matrix Δ [out, in] by its numbers, in the order of its rows: values[k] stands at (rows[k], columns[k]).
/// Of it a part counts, rows [first_row, last_row) and columns [first_column, last_column); x and y are of that part.
struct SparsePlaces {
  BasicVector<const std::int32_t> rows;
  BasicVector<const std::int32_t> columns;
  std::int64_t first_row = 0, last_row = 0;
  std::int64_t first_column = 0, last_column = 0;

  bool counts(std::size_t k) const {
    return first_row <= rows[k] && rows[k] < last_row && first_column <= columns[k] && columns[k] < last_column;
  }
};

/// y += Δ x for each token: x [T, in], y [T, out] of the part that counts.
using SparseForward = void(const SparsePlaces& places, ConstVector values, ConstMatrix x, Matrix y);
/// d_values[k] += Σ_t dy[t, row] · x[t, column] of those that count, and dx += dy Δ unless dx has no rows.
using SparseBackward = void(const SparsePlaces& places, ConstVector values, ConstMatrix x, ConstMatrix dy,
                            Vector d_values, Matrix dx);

namespace reference {
SparseForward sparse_forward;
SparseBackward sparse_backward;
}  // namespace reference
namespace cpu {
SparseForward sparse_forward;
SparseBackward sparse_backward;
}  // namespace cpu

namespace cuda {
SparseForward sparse_forward;
SparseBackward sparse_backward;
}  // namespace cuda

}  // namespace braid::kernels

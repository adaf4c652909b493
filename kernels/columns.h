#pragma once

#include <span>

#include "kernels/matrix.h"

namespace braid::kernels {

/// y = scale ⊙ x, column by column, or y += that where it accumulates. x, y [T, N], which may be one, scale [N].
using ScaleColumns = void(ConstVector scale, ConstMatrix x, bool accumulate, Matrix y);
/// y += factor · row of every row. y [T, N], row [N].
using AddRow = void(float factor, ConstVector row, Matrix y);
/// sums[i] += factor · Σ_t a[t, i] · b[t, i], in the order of the rows; b without rows stands for ones. a, b [T, N].
using SumColumns = void(float factor, ConstMatrix a, ConstMatrix b, Vector sums);

namespace reference {
ScaleColumns scale_columns;
AddRow add_row;
SumColumns sum_columns;
}  // namespace reference
namespace cpu {
ScaleColumns scale_columns;
AddRow add_row;
SumColumns sum_columns;
}  // namespace cpu

namespace cuda {
ScaleColumns scale_columns;
AddRow add_row;
SumColumns sum_columns;
}  // namespace cuda

}  // namespace braid::kernels

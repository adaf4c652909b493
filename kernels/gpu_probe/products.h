#pragma once

#include "kernels/gpu_probe/shapes.h"

namespace braid::gpu_probe {

/// A linear's product as BLAS sees it, D [m, n] = op(A) · op(B), every matrix stored by columns.
///
/// A network stores its matrices by rows, X [tokens, in], Y [tokens, out], W [out, in] as Hugging Face does; by columns
/// the same bytes are their transposes. D is Yᵀ, dXᵀ or dWᵀ.
struct ProductLayout {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  std::int64_t a_rows = 0, a_columns = 0;  ///< as stored; rows are also the leading dimension
  std::int64_t b_rows = 0, b_columns = 0;
};
ProductLayout product_layout(const Point& linear);

/// A multiply-add counts 2.
double product_flops(const Point& linear);

/// What a point's operands take, in bytes.
struct OperandBytes {
  std::int64_t cold = 0;   ///< what training last touched a whole pass ago: W going forward and backward, X for dW
  std::int64_t input = 0;  ///< what the operator before has just written
  std::int64_t output = 0;
};
/// Of a linear: A, B and D. A copy has no cold operand; an addition's second operand is under `cold`.
OperandBytes operand_bytes(const Point& point);

}  // namespace braid::gpu_probe

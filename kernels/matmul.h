#pragma once

#include <span>

#include "kernels/dropout.h"
#include "kernels/matrix.h"

namespace braid::kernels {

enum class Transpose { no, yes };

/// c = alpha · op(a) op(b) + beta · c, beta 0 or 1 (0 never reads c). op(a) [M, K], op(b) [K, N], c [M, N]; c overlaps
/// neither a nor b. Empty M or N does nothing; empty K counts as zeros.
using Matmul = void(float alpha, ConstMatrix a, Transpose a_transpose, ConstMatrix b, Transpose b_transpose, float beta,
                    Matrix c);

/// The matrix of a product whose numbers are dropped, or scaled where they are kept, as `dropout` has it: an operand,
/// or what is added to c. It is taken as it stands in memory, its rows being those of DropoutRows.
enum class Dropped { nothing, a, b, sum };

/// One of several products that are made in one call.
struct MatmulCall {
  float alpha = 1;
  ConstMatrix a;
  Transpose a_transpose = Transpose::no;
  ConstMatrix b;
  Transpose b_transpose = Transpose::no;
  float beta = 0;
  Matrix c;
  Dropped dropped = Dropped::nothing;  ///< else of devices that drop in products (Device::drops_in_products)
  DropoutRows drop = {};
};

/// Each as `matmul` makes it, to the bit, in any order or side by side: no c overlaps another's matrices. The adapters
/// of many tasks, small and of unlike ranks, are such a table.
using MatmulGroup = void(std::span<const MatmulCall> calls);

namespace reference {
Matmul matmul;
MatmulGroup matmul_group;
}  // namespace reference

/// For weights that change, and so are not packed: adapters. Each element is summed in the order of K, whatever the
/// shape: rows do not depend on M, on their place, on strides, or on the number of threads. Nothing is compiled or kept
/// by shape.
namespace cpu {
Matmul matmul;
MatmulGroup matmul_group;
}  // namespace cpu

/// Of f32 exactly, and where a matrix is of bf16 of numbers rounded to that, by tensor cores: adapters in f32 beside
/// activations in bf16. The order of each sum depends on K and on the lesser of M and N alone.
namespace cuda {
Matmul matmul;
MatmulGroup matmul_group;
}  // namespace cuda

}  // namespace braid::kernels

#include <cmath>

#include "kernels/cuda/simt.h"
#include "kernels/row_norms.h"

namespace braid::kernels::cuda {
namespace {

/// A thread a row of B.
__global__ void low_rank_squares_kernel(float s, View<const float> b, View<const float> with_weight, const float* bias,
                                        View<const float> inner, float* squares) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row >= b.rows) return;
  const double shift = bias ? bias[row] : 0.0;
  double linear = 0, quadratic = 0;
  for (std::int64_t k = 0; k < b.columns; ++k) {
    const double number = b(row, k);
    linear += number * (double{with_weight(k, row)} - shift);
    double sum = 0;
    for (std::int64_t l = 0; l < b.columns; ++l) sum += double{b(row, l)} * double{inner(k, l)};
    quadratic += number * sum;
  }
  squares[row] += static_cast<float>(s * (2 * linear + s * quadratic));
}

struct InverseRoot {
  const float* squares;
  float* roots;
  __device__ void operator()(std::int64_t /*row*/, std::int64_t place) const {
    const float square = squares[place];
    roots[place] = 1.0F / sqrtf(square > 1e-30F ? square : 1e-30F);
  }
};

}  // namespace

void low_rank_squares(float s, ConstMatrix b, ConstMatrix with_weight, ConstVector bias, ConstMatrix inner,
                      Vector squares) {
  launch(low_rank_squares_kernel, dim3(blocks_for(b.rows)), kThreads, 0, s, view<const float>(b),
         view<const float>(with_weight), bias.empty() ? nullptr : bias.data(), view<const float>(inner),
         squares.data());
}

void inverse_roots(ConstVector squares, Vector roots) {
  for_each(1, std::ssize(squares), InverseRoot{squares.data(), roots.data()});
}

}  // namespace braid::kernels::cuda

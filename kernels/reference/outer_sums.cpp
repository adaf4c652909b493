#include "kernels/outer_sums.h"

namespace braid::kernels::reference {

void outer_sums(float alpha, ConstMatrix a, ConstMatrix b, ExactSums sums) {
  for (std::int64_t t = 0; t < a.rows; ++t) {
    for (std::int64_t i = 0; i < sums.rows; ++i) {
      for (std::int64_t j = 0; j < sums.columns; ++j) {
        const float scaled = alpha * a.row(t)[i];
        add_exactly(double{scaled} * double{b.row(t)[j]}, sums.high[i * sums.stride + j],
                    sums.low[i * sums.stride + j]);
      }
    }
  }
}

}  // namespace braid::kernels::reference

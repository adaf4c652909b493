#include "kernels/swiglu.h"

#include <cmath>

namespace braid::kernels::reference {

void swiglu_forward(ConstMatrix gate_up, Matrix y) {
  for (std::int64_t t = 0; t < y.rows; ++t) {
    for (std::int64_t i = 0; i < y.columns; ++i) {
      const double gate = gate_up.row(t)[i];
      const double up = gate_up.row(t)[y.columns + i];
      y.row(t)[i] = static_cast<float>(gate / (1.0 + std::exp(-gate)) * up);
    }
  }
}

void swiglu_backward(ConstMatrix dy, ConstMatrix gate_up, Matrix d_gate_up) {
  for (std::int64_t t = 0; t < dy.rows; ++t) {
    for (std::int64_t i = 0; i < dy.columns; ++i) {
      const double gate = gate_up.row(t)[i];
      const double up = gate_up.row(t)[dy.columns + i];
      const double gradient = dy.row(t)[i];
      const double sigmoid = 1.0 / (1.0 + std::exp(-gate));
      d_gate_up.row(t)[i] = static_cast<float>(gradient * up * sigmoid * (1.0 + gate * (1.0 - sigmoid)));
      d_gate_up.row(t)[dy.columns + i] = static_cast<float>(gradient * gate * sigmoid);
    }
  }
}

}  // namespace braid::kernels::reference

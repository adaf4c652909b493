#include "kernels/swiglu.h"

#include "kernels/cpu/lanes.h"
#include "kernels/cpu/rows.h"

namespace braid::kernels::cpu {
namespace {

Lanes sigmoid(Lanes x) {
  return 1.0F / (1.0F + exponential(-x));
}

}  // namespace

void swiglu_forward(ConstMatrix gate_up, Matrix y) {
  BRAID_CHECK(gate_up.rows == y.rows && gate_up.columns == 2 * y.columns, "[{}, {}] to [{}, {}]", gate_up.rows,
              gate_up.columns, y.rows, y.columns);
  for_rows(y.rows, kCopies * y.columns, [&](std::int64_t t) {
    const float* gates = gate_up.row(t);
    const float* ups = gates + y.columns;
    float* to = y.row(t);
    for_lanes(y.columns, [&](std::int64_t i, std::int64_t count) {
      const Lanes gate = load(gates + i, count);
      store(to + i, gate * sigmoid(gate) * load(ups + i, count), count);
    });
  });
}

void swiglu_backward(ConstMatrix dy, ConstMatrix gate_up, Matrix d_gate_up) {
  BRAID_CHECK(gate_up.rows == dy.rows && gate_up.columns == 2 * dy.columns && d_gate_up.rows == dy.rows &&
                  d_gate_up.columns == gate_up.columns,
              "[{}, {}] and [{}, {}] to [{}, {}]", dy.rows, dy.columns, gate_up.rows, gate_up.columns, d_gate_up.rows,
              d_gate_up.columns);
  for_rows(dy.rows, kCopies * dy.columns, [&](std::int64_t t) {
    const float* gradients = dy.row(t);
    const float* gates = gate_up.row(t);
    const float* ups = gates + dy.columns;
    float* to = d_gate_up.row(t);
    for_lanes(dy.columns, [&](std::int64_t i, std::int64_t count) {
      const Lanes gate = load(gates + i, count);
      const Lanes up = load(ups + i, count);
      const Lanes gradient = load(gradients + i, count);
      const Lanes open = sigmoid(gate);
      const Lanes silu = gate * open;
      store(to + i, gradient * up * (open + silu * (1.0F - open)), count);
      store(to + dy.columns + i, gradient * silu, count);
    });
  });
}

}  // namespace braid::kernels::cpu

#include "kernels/adamw.h"

#include <cmath>

namespace braid::kernels::reference {

void adamw(const AdamWStep& step, ConstVector gradient, Vector parameter, Vector first_moment, Vector second_moment) {
  const double correction1 = 1.0 - std::pow(step.beta1, static_cast<double>(step.step));
  const double correction2 = 1.0 - std::pow(step.beta2, static_cast<double>(step.step));
  for (std::size_t i = 0; i < parameter.size(); ++i) {
    const double g = step.gradient_scale * gradient[i];
    const double m = step.beta1 * first_moment[i] + (1.0 - step.beta1) * g;
    const double v = step.beta2 * second_moment[i] + (1.0 - step.beta2) * g * g;
    const double decayed = parameter[i] - step.learning_rate * step.weight_decay * parameter[i];
    const double denominator = std::sqrt(v) / std::sqrt(correction2) + step.epsilon;
    first_moment[i] = static_cast<float>(m);
    second_moment[i] = static_cast<float>(v);
    parameter[i] = static_cast<float>(decayed - step.learning_rate / correction1 * m / denominator);
  }
}

void adamw_group(std::span<const AdamWCall> calls) {
  for (const AdamWCall& call : calls)
    adamw(call.step, call.gradient, call.parameter, call.first_moment, call.second_moment);
}

}  // namespace braid::kernels::reference

#include "kernels/adamw.h"

#include <cmath>

#include "base/error.h"
#include "kernels/cpu/rows.h"

namespace braid::kernels::cpu {

void adamw(const AdamWStep& step, ConstVector gradient, Vector parameter, Vector first_moment, Vector second_moment) {
  const std::size_t count = parameter.size();
  BRAID_CHECK(gradient.size() == count && first_moment.size() == count && second_moment.size() == count,
              "{} parameters, {} gradients, {} and {} moments", count, gradient.size(), first_moment.size(),
              second_moment.size());
  BRAID_CHECK(step.step >= 1, "step {}", step.step);
  const double correction1 = 1.0 - std::pow(step.beta1, static_cast<double>(step.step));
  const double correction2 = 1.0 - std::pow(step.beta2, static_cast<double>(step.step));
  const auto kept = static_cast<float>(1.0 - step.learning_rate * step.weight_decay);
  const auto beta1 = static_cast<float>(step.beta1);
  const auto beta2 = static_cast<float>(step.beta2);
  const auto share1 = static_cast<float>(1.0 - step.beta1);
  const auto share2 = static_cast<float>(1.0 - step.beta2);
  const auto scale = static_cast<float>(step.gradient_scale);
  const auto rate = static_cast<float>(step.learning_rate / correction1);
  const auto root_correction = static_cast<float>(std::sqrt(correction2));
  const auto epsilon = static_cast<float>(step.epsilon);
  for_pieces(static_cast<std::int64_t>(count), kCopies, [&](std::int64_t first, std::int64_t last) {
    const float* gradients = gradient.data();
    float* parameters = parameter.data();
    float* means = first_moment.data();
    float* squares = second_moment.data();
#pragma omp simd
    for (std::int64_t i = first; i < last; ++i) {
      const float g = scale * gradients[i];
      const float m = beta1 * means[i] + share1 * g;
      const float v = beta2 * squares[i] + share2 * g * g;
      means[i] = m;
      squares[i] = v;
      parameters[i] = kept * parameters[i] - rate * m / (std::sqrt(v) / root_correction + epsilon);
    }
  });
}

void adamw_group(std::span<const AdamWCall> calls) {
  for (const AdamWCall& call : calls)
    adamw(call.step, call.gradient, call.parameter, call.first_moment, call.second_moment);
}

}  // namespace braid::kernels::cpu

#include <cmath>

#include "kernels/adamw.h"
#include "kernels/cuda/simt.h"

namespace braid::kernels::cuda {
namespace {

struct TakeStep {
  AdamWStep step;
  double correction1, root_of_correction2;
  const float* gradient;
  float *parameter, *first_moment, *second_moment;
  __device__ void operator()(std::int64_t /*row*/, std::int64_t i) const {
    const double g = step.gradient_scale * gradient[i];
    const double m = step.beta1 * first_moment[i] + (1.0 - step.beta1) * g;
    const double v = step.beta2 * second_moment[i] + (1.0 - step.beta2) * g * g;
    const double decayed = parameter[i] - step.learning_rate * step.weight_decay * parameter[i];
    first_moment[i] = static_cast<float>(m);
    second_moment[i] = static_cast<float>(v);
    parameter[i] = static_cast<float>(decayed - step.learning_rate / correction1 * m /
                                                    (sqrt(v) / root_of_correction2 + step.epsilon));
  }
};

}  // namespace

void adamw(const AdamWStep& step, ConstVector gradient, Vector parameter, Vector first_moment, Vector second_moment) {
  const auto steps = static_cast<double>(step.step);
  for_each(1, std::ssize(parameter),
           TakeStep{step, 1.0 - std::pow(step.beta1, steps), std::sqrt(1.0 - std::pow(step.beta2, steps)),
                    gradient.data(), parameter.data(), first_moment.data(), second_moment.data()});
}

}  // namespace braid::kernels::cuda

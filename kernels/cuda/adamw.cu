#include <algorithm>
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

TakeStep take_step(const AdamWCall& call) {
  const auto steps = static_cast<double>(call.step.step);
  return {call.step,
          1.0 - std::pow(call.step.beta1, steps),
          std::sqrt(1.0 - std::pow(call.step.beta2, steps)),
          call.gradient.data(),
          call.parameter.data(),
          call.first_moment.data(),
          call.second_moment.data()};
}

/// So many numbers of a call, by a block.
constexpr std::int64_t kPiece = 4 * kThreads;
struct Piece {
  std::int64_t first, last;
  std::int32_t call;
};

__global__ void steps_kernel(const TakeStep* steps, const Piece* pieces) {
  const Piece piece = pieces[blockIdx.x];
  const TakeStep& step = steps[piece.call];
  for (std::int64_t i = piece.first + threadIdx.x; i < piece.last; i += blockDim.x) step(0, i);
}

}  // namespace

void adamw(const AdamWStep& step, ConstVector gradient, Vector parameter, Vector first_moment, Vector second_moment) {
  const AdamWCall call{step, gradient, parameter, first_moment, second_moment};
  adamw_group({&call, 1});
}

void adamw_group(std::span<const AdamWCall> calls) {
  std::vector<TakeStep> steps;
  std::vector<Piece> pieces;
  for (const AdamWCall& call : calls) {
    const std::int64_t count = std::ssize(call.parameter);
    for (std::int64_t first = 0; first < count; first += kPiece)
      pieces.push_back({first, std::min(first + kPiece, count), static_cast<std::int32_t>(steps.size())});
    steps.push_back(take_step(call));
  }
  if (pieces.empty()) return;
  const Numbers<TakeStep> staged(steps);
  const Numbers<Piece> staged_pieces(pieces);
  launch(steps_kernel, dim3(static_cast<unsigned>(pieces.size())), kThreads, 0, staged.data(), staged_pieces.data());
}

}  // namespace braid::kernels::cuda

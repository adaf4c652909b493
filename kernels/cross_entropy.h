#pragma once

#include <cstdint>
#include <span>

#include "kernels/matrix.h"

namespace braid::kernels {

/// losses[t] = log Σ exp(logits[t]) − logits[t][labels[t]], and logits[t] becomes scales[t] · (softmax(logits[t]) −
/// onehot), the gradient of Σ scales[t] · losses[t]. logits [T, V], labels [T] in [0, V), scales, losses [T].
using CrossEntropy = void(Matrix logits, std::span<const std::int32_t> labels, std::span<const float> scales,
                          std::span<float> losses);

namespace reference {
CrossEntropy cross_entropy;
}
namespace cpu {
CrossEntropy cross_entropy;
}

}  // namespace braid::kernels

#pragma once

#include "exec/layer_weights.h"

namespace braid::exec {

/// Weights of a whole backbone of that shape, for measuring: the numbers do not matter, only that none is special.
StageWeights random_weights(const costmodel::BackboneShape& shape, const kernels::Kernels& kernels,
                            costmodel::DataType type = costmodel::DataType::f32);

/// A frozen linear layer of random numbers.
std::unique_ptr<kernels::FrozenLinear> random_linear(std::int64_t out, std::int64_t in, bool backward,
                                                     std::uint64_t key, const kernels::Kernels& kernels,
                                                     kernels::WeightType type = kernels::WeightType::f32);

/// Uniform in ±deviation / 2.
std::vector<float> random_numbers(std::int64_t count, double deviation, std::uint64_t key);

}  // namespace braid::exec

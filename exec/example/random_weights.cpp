#include "exec/example/random_weights.h"

#include "base/random.h"
#include "exec/rope_frequencies.h"

namespace braid::exec {

std::vector<float> random_numbers(std::int64_t count, double deviation, std::uint64_t key) {
  std::vector<float> numbers(static_cast<std::size_t>(count));
  RandomStream random(key);
  for (float& number : numbers) number = static_cast<float>((random.next_uniform() - 0.5) * deviation);
  return numbers;
}

std::unique_ptr<kernels::FrozenLinear> random_linear(std::int64_t out, std::int64_t in, bool backward,
                                                     std::uint64_t key, const kernels::Kernels& kernels) {
  const std::vector<float> weight = random_numbers(out * in, 0.1, key);
  return kernels.pack_linear(kernels::ConstMatrix(weight.data(), out, in), {}, backward);
}

StageWeights random_weights(const costmodel::BackboneShape& shape, const kernels::Kernels& kernels) {
  StageWeights weights;
  weights.rope_frequencies = rope_frequencies(shape);
  weights.embedding = random_numbers(shape.vocabulary * shape.hidden, 1.0, 1);
  const std::vector<float> ones(static_cast<std::size_t>(shape.hidden), 1.0F);
  const std::vector<float> head_norm(static_cast<std::size_t>(shape.qk_norm ? shape.head_dim : 0), 1.0F);
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    const auto key = static_cast<std::uint64_t>(10 * layer + 10);
    weights.layers.push_back({ones, ones, random_linear(shape.qkv_width(), shape.hidden, layer > 0, key, kernels),
                              random_linear(shape.hidden, shape.query_width(), true, key + 1, kernels),
                              random_linear(2 * shape.intermediate, shape.hidden, true, key + 2, kernels),
                              random_linear(shape.hidden, shape.intermediate, true, key + 3, kernels), head_norm,
                              head_norm});
  }
  weights.final_norm = ones;
  weights.head = random_linear(shape.vocabulary, shape.hidden, true, 2, kernels);
  return weights;
}

}  // namespace braid::exec

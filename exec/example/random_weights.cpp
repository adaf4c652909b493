#include "exec/example/random_weights.h"

#include <algorithm>
#include <span>

#include "base/random.h"
#include "exec/rope_frequencies.h"

namespace braid::exec {

std::vector<float> random_numbers(std::int64_t count, double deviation, std::uint64_t key) {
  constexpr std::int64_t kDrawn = 1'000'003;  // a prime: rows of a matrix differ
  std::vector<float> numbers(static_cast<std::size_t>(count));
  RandomStream random(key);
  const std::span<float> drawn = std::span(numbers).first(static_cast<std::size_t>(std::min(count, kDrawn)));
  for (float& number : drawn) number = static_cast<float>((random.next_uniform() - 0.5) * deviation);
  for (std::int64_t i = kDrawn; i < count; ++i)
    numbers[static_cast<std::size_t>(i)] = numbers[static_cast<std::size_t>(i - kDrawn)];
  return numbers;
}

std::unique_ptr<kernels::FrozenLinear> random_linear(std::int64_t out, std::int64_t in, bool backward,
                                                     std::uint64_t key, const kernels::Kernels& kernels,
                                                     kernels::WeightType type) {
  const std::vector<float> weight = random_numbers(out * in, 0.1, key);
  return kernels.pack_linear(kernels::ConstMatrix(weight.data(), out, in), {}, backward, type);
}

StageWeights random_weights(const costmodel::BackboneShape& shape, const kernels::Kernels& kernels,
                            costmodel::DataType type) {
  StageWeights weights;
  if (shape.rotary()) weights.rope_frequencies = rope_frequencies(shape);
  if (!shape.rotary()) weights.positions = random_numbers(shape.max_position * shape.hidden, 1.0, 3);
  std::vector<float> table = random_numbers(shape.vocabulary * shape.hidden, 1.0, 1);
  table.resize(table.size() + static_cast<std::size_t>(shape.hidden));
  weights.embedding = std::move(table);
  const auto ones = [&](std::int64_t width) {
    const auto count = static_cast<std::size_t>(width);
    return NormWeights{std::vector<float>(count, 1.0F), std::vector<float>(shape.gated() ? 0 : count, 0.0F)};
  };
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    LayerWeights& layer = weights.layers.emplace_back();
    for (const costmodel::LayerOp& op : costmodel::layer_ops(shape)) {
      const auto group = static_cast<std::size_t>(op.group);
      if (op.work == costmodel::LayerWork::norm) layer.norms[static_cast<std::size_t>(op.to)] = ones(shape.hidden);
      if (op.work == costmodel::LayerWork::head_norm) layer.query_norm = layer.key_norm = ones(shape.head_dim);
      if (op.work != costmodel::LayerWork::linear) continue;
      layer.products[group] =
          random_linear(width(shape, op.to), width(shape, op.from), i > 0 || op.group != costmodel::ModuleGroup::qkv,
                        static_cast<std::uint64_t>(10 * i + 10) + group, kernels, weight_type(type));
      for (const costmodel::Module module : costmodel::modules_of(shape, op.group))
        layer.row_squares[static_cast<std::size_t>(module)].assign(
            static_cast<std::size_t>(costmodel::module_shape(shape, module).out), 1.0F);
    }
    join_qkv_squares(layer);
  }
  weights.final_norm = ones(shape.hidden);
  weights.head = random_linear(shape.vocabulary, shape.hidden, true, 2, kernels);
  return weights;
}

}  // namespace braid::exec

#include "exec/layer_weights.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "exec/rope_frequencies.h"
#include "exec/weight_names.h"

namespace braid::exec {
namespace {

using costmodel::Module;
using costmodel::ModuleGroup;
using kernels::ConstMatrix;

/// A tensor's numbers, all of which must be finite.
std::vector<float> read_finite(const SafetensorsFolder& tensors, const std::string& name,
                               const std::vector<std::int64_t>& shape) {
  std::vector<float> numbers = tensors.read_f32(name, shape);
  const auto broken = std::find_if(numbers.begin(), numbers.end(), [](float number) { return !std::isfinite(number); });
  if (broken != numbers.end())
    throw error("{}: tensor '{}' holds {} at {}, with which nothing can be computed; fetch the backbone again",
                tensors.find(name)->file.string(), name, *broken, broken - numbers.begin());
  return numbers;
}

/// A rank's rows and columns of a layer's tensors.
class LayerReader {
 public:
  LayerReader(const SafetensorsFolder& tensors, const Shard& shard, const kernels::Kernels& kernels, std::string prefix)
      : tensors_(tensors), shard_(shard), kernels_(kernels), prefix_(std::move(prefix)) {}

  NormWeights norm(const char* name, std::int64_t width) const {
    return {read_finite(tensors_, prefix_ + name + ".weight", {width})};
  }

  /// The modules of a group, stacked along their outputs.
  std::unique_ptr<kernels::FrozenLinear> product(ModuleGroup group, bool bias, bool backward) const {
    std::vector<float> weight, biases;
    std::int64_t in = 0, out = 0;
    for (const Module module : costmodel::modules_of(group)) {
      const costmodel::ModuleShape whole = costmodel::module_shape(shard_.whole(), module);
      const Share rows = shard_.outputs(module), columns = shard_.inputs(module);
      const bool attention = group == ModuleGroup::qkv || group == ModuleGroup::o;
      const std::string name =
          prefix_ + (attention ? "self_attn." : "mlp.") + std::string(costmodel::module_name(module));
      append(read_finite(tensors_, name + ".weight", {whole.out, whole.in}), whole.in, rows, columns, weight);
      in = columns.count();
      out += rows.count();
      if (bias) append(read_finite(tensors_, name + ".bias", {whole.out}), 1, rows, {0, 1}, biases);
    }
    return kernels_.pack_linear(ConstMatrix(weight.data(), out, in), biases, backward);
  }

 private:
  /// Adds rows of a tensor that is `width` numbers wide, and of these rows the columns.
  static void append(const std::vector<float>& tensor, std::int64_t width, Share rows, Share columns,
                     std::vector<float>& to) {
    if (to.empty() && std::ssize(tensor) == rows.count() * columns.count()) {
      to = tensor;
      return;
    }
    to.reserve(to.size() + static_cast<std::size_t>(rows.count() * columns.count()));
    for (std::int64_t row = rows.first; row < rows.last; ++row) {
      const auto first = tensor.begin() + row * width;
      to.insert(to.end(), first + columns.first, first + columns.last);
    }
  }

  const SafetensorsFolder& tensors_;
  const Shard& shard_;
  const kernels::Kernels& kernels_;
  std::string prefix_;
};

LayerWeights load_layer(const LayerReader& reader, const costmodel::BackboneShape& backbone, std::int32_t layer) {
  LayerWeights weights;
  for (const costmodel::LayerOp& op : costmodel::layer_ops(backbone)) {
    if (op.work == costmodel::LayerWork::norm) {
      const bool attention = op.to == costmodel::Slot::attention_input;
      weights.norms[static_cast<std::size_t>(op.to)] =
          reader.norm(attention ? "input_layernorm" : "post_attention_layernorm", backbone.hidden);
    } else if (op.work == costmodel::LayerWork::linear) {
      const bool bottom = op.group == ModuleGroup::qkv && layer == 0;  // nothing below needs a gradient
      weights.products[static_cast<std::size_t>(op.group)] =
          reader.product(op.group, op.group == ModuleGroup::qkv && backbone.qkv_bias, !bottom);
    } else if (op.work == costmodel::LayerWork::head_norm) {
      weights.query_norm = reader.norm("self_attn.q_norm", backbone.head_dim);
      weights.key_norm = reader.norm("self_attn.k_norm", backbone.head_dim);
    }
  }
  return weights;
}

/// The shard's rows of a table of tokens.
std::vector<float> rows_of_table(const SafetensorsFolder& tensors, const std::string& name, const Shard& shard) {
  const costmodel::BackboneShape& whole = shard.whole();
  std::vector<float> table = read_finite(tensors, name, {whole.vocabulary, whole.hidden});
  const Share rows = shard.vocabulary();
  table.erase(table.begin() + rows.last * whole.hidden, table.end());
  table.erase(table.begin(), table.begin() + rows.first * whole.hidden);
  return table;
}

}  // namespace

StageWeights load_stage_weights(const SafetensorsFolder& tensors, const Shard& shard, const HeldLayers& layers,
                                const kernels::Kernels& kernels) {
  const costmodel::BackboneShape& backbone = shard.whole();
  const WeightNames names(tensors, backbone);
  StageWeights weights;
  weights.rope_frequencies = rope_frequencies(backbone);
  if (layers.first_of_backbone()) {
    weights.embedding = rows_of_table(tensors, names.embedding(), shard);
    weights.embedding.resize(weights.embedding.size() + static_cast<std::size_t>(backbone.hidden));
  }
  for (const std::int32_t layer : layers.numbers())
    weights.layers.push_back(load_layer(LayerReader(tensors, shard, kernels, names.layer(layer)), backbone, layer));
  if (layers.last_of_backbone(backbone.layers)) {
    weights.final_norm = {read_finite(tensors, names.final_norm(), {backbone.hidden})};
    const std::vector<float> head = rows_of_table(tensors, names.head(), shard);
    weights.head = kernels.pack_linear(ConstMatrix(head.data(), shard.vocabulary().count(), backbone.hidden), {}, true);
  }
  return weights;
}

}  // namespace braid::exec
